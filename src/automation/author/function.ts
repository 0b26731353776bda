import type { AutomationContext } from './context.ts'
import { type InferInputs, type InputsSource, type ResolvedInputs, resolveInputs } from './inputs/resolve.ts'

/**
 * The code of a function. It marks the run through `context`. Anything it throws is an exception, unless it is
 * `RunFailed`.
 */
export type FunctionBody<Inputs> = (context: AutomationContext<Inputs>, inputs: Inputs) => void | Promise<void>

/** The description of a function, besides its code and its inputs. */
export interface FunctionOptions {
  /** The display name. The name of the body by default. */
  readonly name?: string
  /** Text about the function, for people. */
  readonly description?: string
  /**
   * The outcome of a run that ends without a mark: an exception that says so, or a success whose log has a warning.
   * `exception` by default.
   */
  readonly defaultStatus?: 'exception' | 'success'
  /** How long the function may continue after `signal` aborts. 10,000 by default. */
  readonly graceMs?: number
}

/** A function as a host registers and runs it. */
export interface AutomationFunction {
  /** The name, for people. */
  readonly name: string
  /** Text about the function, for people. */
  readonly description: string
  /** Receives the result of `inputs`. */
  readonly body: FunctionBody<never>
  /** The inputs that the function takes. */
  readonly inputs: ResolvedInputs<unknown>
  /** The status of a run that ends without a mark. */
  readonly defaultStatus: 'exception' | 'success'
  /** Milliseconds that the function has to end after its signal aborted. */
  readonly graceMs: number
}

const GRACE_MS = 10_000

/** A body with its inputs, to be registered or run. Throws `RangeError`, and as `resolveInputs` does. */
export function defineFunction<Source extends InputsSource>(
  body: FunctionBody<InferInputs<Source>>,
  Inputs: Source,
  options: FunctionOptions = {},
): AutomationFunction {
  const { name = body.name, description = '', defaultStatus = 'exception', graceMs = GRACE_MS } = options
  if (!(graceMs >= 0)) throw new RangeError(`graceMs is ${graceMs}; it must be 0 or more`)
  return {
    name: name === '' ? 'function' : name,
    description,
    body,
    inputs: resolveInputs(Inputs),
    defaultStatus,
    graceMs,
  }
}

/** Thrown by a function to end as failed: the model breaks a rule. As `markRunFailed`, but it stops the function. */
export class RunFailed extends Error {
  /** The name of the class. */
  override readonly name = 'RunFailed'
}

/**
 * The reason why `signal` aborted: a person canceled the run, or the server has ended it. Nothing more of it is
 * reported.
 */
export class RunCanceled extends Error {
  /** The name of the class. */
  override readonly name = 'RunCanceled'
}

/** Why `signal` aborted: the process, or the host, is about to stop. */
export class RunInterrupted extends Error {
  /** The name of the class. */
  override readonly name = 'RunInterrupted'
}
