import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { inspect, isDeepStrictEqual } from 'node:util'
import type { StorageErrorName } from '../storage-errors.ts'
import { CallTrace, describedBytes } from './call-trace.ts'

type ErrorName = StorageErrorName | 'RangeError'

/**
 * One rule of a seam's contract. `run` rejects with the violation; any test runner can run it, one case after the
 * other.
 */
export interface ConformanceCase {
  /** The rule that the case checks. It also says if the rule is not tested, and why. */
  readonly name: string
  /** Why the rule is not tested: an option that it needs is missing. Then `run` does nothing. */
  readonly untested?: string
  /** Rejects with the violation of the rule. */
  readonly run: () => Promise<void>
}

/**
 * Opens the store under test, each time with the same data if it is persistent. Every case calls it, and closes the
 * result.
 */
export type Opener<S> = () => S | Promise<S>

/** One rule as the suites write it: with a store that is open, and a context of helpers. */
export interface Rule<C> {
  readonly name: string
  /** Runs only for stores that keep their contents when they are closed. */
  readonly isForPersistent?: boolean
  /** An option without which the rule cannot be tested. */
  readonly needs?: 'openTwo' | 'cutAt' | 'restart' | 'thorough'
  readonly check: (context: C) => Promise<void>
}

export interface Closable {
  readonly isPersistent?: boolean
  close(): Promise<void>
}

/** Options of the cases. A case whose option is missing says so in its name. */
export interface ConformanceOptions<S = unknown> {
  /** How long one case may take before it fails, in milliseconds. Default: 60,000. */
  readonly timeoutMs?: number
  /** Two stores over one place, as two servers have them, with the data of the other calls of `open`. */
  readonly openTwo?: () => readonly [S, S] | Promise<readonly [S, S]>
  /** What can go wrong below the store. */
  readonly faults?: ConformanceFaults
  /** False leaves out cases that put many blobs or much data. Default: true. */
  readonly thorough?: boolean
}

/** Faults that a test can cause below the store. */
export interface ConformanceFaults {
  /**
   * Cuts the connection to the engine at the message with this number, counted from 1 at this call, in both directions.
   * Later connections work.
   */
  readonly cutAt?: (message: number) => ConnectionCut
  /** Ends the engine without a warning, as a loss of power would, and starts it again. Resolves when it has started. */
  readonly restart?: () => Promise<void>
}

/** A connection that is to be cut. */
export interface ConnectionCut {
  /** Ends the wait for the message, and says whether the connection was cut. */
  end(): boolean
}

/** More than any case puts into a store. Other entries may lie there, too. */
const ITEMS_MAX = 1_000_000
const TIMEOUT_MS = 60_000
const VALUES_SHOWN_MAX = 20
/** How long a store may take to close after a failed case; some call may still hang. */
const CLOSE_MS = 5_000

/**
 * Opens a store for each rule and closes it after it, whatever happens. Each case ends within its time limit: a test
 * runner that meets a promise that never settles cancels all later tests.
 */
export function casesOf<S extends Closable, C>(
  rules: readonly Rule<C>[],
  open: Opener<S>,
  contextOf: (session: Session<S>) => C,
  options: ConformanceOptions<S> = {},
): ConformanceCase[] {
  const { timeoutMs = TIMEOUT_MS } = options
  return rules.map((rule) => {
    const untested = isTestable(rule, options) ? undefined : `it needs the option ${rule.needs}`
    if (untested !== undefined)
      return { name: `${rule.name} [not tested: ${untested}]`, untested, run: async () => undefined }
    return { name: rule.name, run: () => runCase(rule, new Session(open, options), contextOf, timeoutMs) }
  })
}

function isTestable<S, C>({ needs }: Rule<C>, { openTwo, faults, thorough = true }: ConformanceOptions<S>): boolean {
  if (needs === 'thorough') return thorough
  if (needs === 'openTwo') return openTwo !== undefined
  return needs === undefined || faults?.[needs] !== undefined
}

async function runCase<S extends Closable, C>(
  rule: Rule<C>,
  session: Session<S>,
  contextOf: (session: Session<S>) => C,
  timeoutMs: number,
): Promise<void> {
  try {
    await within(timeoutMs, 'the case', runRule(rule, session, contextOf))
  } catch (error) {
    await within(CLOSE_MS, 'close', session.close()).catch(() => undefined)
    throw explained(error, session.trace)
  }
  await within(timeoutMs, 'close', session.close())
}

async function runRule<S extends Closable, C>(
  { check, isForPersistent = false, needs }: Rule<C>,
  session: Session<S>,
  contextOf: (session: Session<S>) => C,
): Promise<void> {
  const { isPersistent = true } = await (needs === 'openTwo' ? session.startTwo() : session.start())
  if (isPersistent || !isForPersistent) await check(contextOf(session))
}

/** The failure with the calls that led to it: they show the argument that the store mishandled. */
function explained(error: unknown, trace: CallTrace): Error {
  const message = error instanceof Error ? error.message : String(error)
  return new Error(`${message}\n\nThe last calls, in the order in which they began:\n${trace.text()}`, { cause: error })
}

export class Session<S extends Closable> {
  readonly trace: CallTrace = new CallTrace()
  readonly #open: Opener<S>
  readonly #options: ConformanceOptions<S>
  #store: S | undefined
  #other: S | undefined

  constructor(open: Opener<S>, options: ConformanceOptions<S>) {
    this.#open = open
    this.#options = options
  }

  get store(): S {
    return opened(this.#store)
  }

  /** The second store over the place, of a rule that needs `openTwo`. */
  get other(): S {
    return opened(this.#other)
  }

  get faults(): ConformanceFaults {
    return this.#options.faults ?? {}
  }

  async start(): Promise<S> {
    this.#store = this.trace.around(await this.#open())
    return this.#store
  }

  async startTwo(): Promise<S> {
    const [store, other] = (await this.#options.openTwo?.()) ?? []
    this.#store = this.trace.around(opened(store))
    this.#other = this.trace.around(opened(other))
    return this.#store
  }

  async reopen(): Promise<void> {
    await this.store.close()
    await this.start()
  }

  async close(): Promise<void> {
    await Promise.all([this.#store?.close(), this.#other?.close()])
  }
}

function opened<S>(store: S | undefined): S {
  if (store === undefined) throw new Error('the store is not open')
  return store
}

/** Fails with both values in one line: `what` names the value. */
export function same(actual: unknown, expected: unknown, what: string): void {
  assert.ok(isDeepStrictEqual(actual, expected), `${what}: must be ${shown(expected)}, but is ${shown(actual)}`)
}

function shown(value: unknown): string {
  return inspect(value, { breakLength: Infinity, compact: true, maxArrayLength: VALUES_SHOWN_MAX })
}

export async function batchesOf<T>(batches: AsyncIterable<readonly T[]>): Promise<T[]> {
  const items: T[] = []
  for await (const batch of batches) {
    items.push(...batch)
    assert.ok(items.length <= ITEMS_MAX, `more than ${ITEMS_MAX} entries came; the pages must end`)
    // Lets the time limit of the case fire, also during an endless series of immediate batches.
    await nextTurn()
  }
  return items
}

export function sameBytes(actual: Uint8Array | undefined, expected: Uint8Array | undefined, what: string): void {
  assert.ok(actual === undefined || actual instanceof Uint8Array, `${what}: must be a Uint8Array or undefined`)
  const isSame = actual && expected ? Buffer.compare(actual, expected) === 0 : actual === expected
  assert.ok(isSame, `${what}: must be ${describedBytes(expected)}, but is ${describedBytes(actual)}`)
}

/** Digits that no other case and no other run of the suite uses, so that cases can share one store. */
export function freshPrefix(): string {
  return randomBytes(8).toString('hex')
}

/** By its name, since a backend may use another copy of the package. */
export async function rejects(
  name: ErrorName,
  run: () => Promise<unknown>,
  detail: string = 'the last call',
): Promise<void> {
  try {
    await run()
  } catch (error) {
    isNamed(name, error, detail)
    return
  }
  assert.fail(`${detail}: must reject with ${name}, but it resolved`)
}

export function isNamed(name: ErrorName, error: unknown, detail: string = 'the last call'): void {
  const isRight = error instanceof Error && error.name === name
  const actual = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  assert.ok(isRight, `${detail}: must reject with ${name}, but it rejected with ${actual}`)
}

/** Callers tell their own abort from a failure by the identity of the reason. */
export async function rejectsWithReason(call: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
  const reason = new Error('the caller went away')
  await assert.rejects(
    call(AbortSignal.abort(reason)),
    (error) => error === reason,
    'an aborted call must reject with the reason of its signal',
  )
}

/** Fails rather than hangs, when something that must end does not. */
export async function within<T>(timeoutMs: number, what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not end within ${timeoutMs} ms`)), timeoutMs)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
