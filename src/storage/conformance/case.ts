import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'

/** One rule of a seam's contract. `run` rejects with what broke it; any test runner can run it, one case after the other. */
export interface ConformanceCase {
  readonly name: string
  /** Rejects with what broke the rule. */
  readonly run: () => Promise<void>
}

/** Opens the store under test, each time with the same data where it is persistent. Every case calls it, and closes what it got. */
export type Opener<S> = () => S | Promise<S>

/** One rule as the suites write it: with a store that is open, and a context of helpers. */
export interface Rule<C> {
  readonly name: string
  readonly check: (context: C) => Promise<void>
}

export interface Closable {
  close(): Promise<void>
}

/** Opens a store for each rule and closes it after it, whatever happens. */
export function casesOf<S extends Closable, C>(
  rules: readonly Rule<C>[],
  open: Opener<S>,
  contextOf: (session: Session<S>) => C,
): ConformanceCase[] {
  return rules.map(({ name, check }) => ({
    name,
    run: async () => {
      const session = new Session(await open(), open)
      try {
        await check(contextOf(session))
      } finally {
        await session.store.close()
      }
    },
  }))
}

export class Session<S extends Closable> {
  readonly #open: Opener<S>
  #store: S

  constructor(store: S, open: Opener<S>) {
    this.#store = store
    this.#open = open
  }

  get store(): S {
    return this.#store
  }

  async reopen(): Promise<void> {
    await this.#store.close()
    this.#store = await this.#open()
  }
}

export async function batchesOf<T>(batches: AsyncIterable<readonly T[]>): Promise<T[]> {
  const items: T[] = []
  for await (const batch of batches) items.push(...batch)
  return items
}

export function hex(bytes: Uint8Array | undefined): string | undefined {
  return bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex')
}

export function sameBytes(actual: Uint8Array | undefined, expected: Uint8Array | undefined, message: string): void {
  assert.ok(actual === undefined || actual instanceof Uint8Array, `${message}: must be a Uint8Array or undefined`)
  assert.equal(hex(actual), hex(expected), message)
}

/** Digits that no other case and no other run of the suite uses, so that cases can share one store. */
export function freshPrefix(): string {
  return randomBytes(8).toString('hex')
}

/** Rejecting with the signal's very reason is what lets callers tell their own abort from a failure. */
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
