import type { AutomationContext } from './context.ts'

/** Reads the inputs of a run, and describes them: what `defineInputs` makes is one. */
export interface InputsReader<Values> {
  /** The values of parsed JSON. Throws an error whose `issues` name the fields, and whose texts hold no value. */
  parse(json: unknown): Values
  toJSONSchema(): object
}

export type FunctionBody<Values> = (context: AutomationContext<Values>, inputs: Values) => void | Promise<void>

export interface FunctionOptions {
  /** What people call it. The name of the body by default. */
  readonly name?: string
  readonly description?: string
  /** What becomes of a run that ends without a mark: an exception that says so, or a success whose log warns. `exception` by default. */
  readonly unmarked?: 'exception' | 'success'
  /** How long the function may go on once `signal` aborted. 10,000 by default. */
  readonly graceMs?: number
}

/** A function as a host registers and runs it. */
export interface AutomationFunction<Values = unknown> {
  readonly name: string
  readonly description: string
  readonly body: FunctionBody<Values>
  readonly inputs: InputsReader<Values>
  readonly unmarked: 'exception' | 'success'
  readonly graceMs: number
}

const GRACE_MS = 10_000

/** Throws `RangeError`. */
export function automationFunction<Values>(body: FunctionBody<Values>, inputs: InputsReader<Values>, options: FunctionOptions = {}): AutomationFunction<Values> {
  const { name = body.name, description = '', unmarked = 'exception', graceMs = GRACE_MS } = options
  if (!(graceMs >= 0)) throw new RangeError(`graceMs is ${graceMs}; it must be 0 or more`)
  return { name: name === '' ? 'function' : name, description, body, inputs, unmarked, graceMs }
}

/** Thrown by a function to end as failed: the model breaks a rule. Like `markRunFailed`, but it stops the function. */
export class RunFailed extends Error {
  override readonly name = 'RunFailed'
}

/** Why `signal` aborted: somebody canceled the run. Nothing more is reported of it. */
export class RunCanceled extends Error {
  override readonly name = 'RunCanceled'
}

/** Why `signal` aborted: the process, or the host, is about to stop. */
export class RunInterrupted extends Error {
  override readonly name = 'RunInterrupted'
}
