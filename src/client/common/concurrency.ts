import { linkedAbort, onAbort } from '../../async/abort.ts'

/** The longest time that a timer can be set to; one that is longer fires at once. */
const TIMER_MS_MAX = 2_147_483_647

/** A timer for a time of any length, `Infinity` too. */
export function timerAfter(waitMs: number, act: () => void): ReturnType<typeof setTimeout> {
  return setTimeout(act, Math.min(waitMs, TIMER_MS_MAX))
}

/**
 * Runs `count` workers until all are done. The first failure, or the signal, ends the others at once and is the
 * rejection.
 */
export async function runWorkers(
  count: number,
  signal: AbortSignal | undefined,
  worker: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const { controller, unlink } = linkedAbort(signal)
  const ended = new Promise<never>(
    (_, reject) => void onAbort(controller.signal, () => reject(controller.signal.reason as Error)),
  )
  ended.catch(() => undefined)
  try {
    controller.signal.throwIfAborted()
    const workers = Array.from({ length: count }, () =>
      worker(controller.signal).catch((error: unknown) => controller.abort(error)),
    )
    await Promise.race([Promise.all(workers), ended])
    controller.signal.throwIfAborted()
  } finally {
    unlink()
  }
}

/** One of the iterables advanced, or the next of them arrived. */
type Step<T> =
  | { readonly iterator: AsyncIterator<T>; readonly result: IteratorResult<T> }
  | { readonly iterator: undefined; readonly source: IteratorResult<AsyncIterable<T>> }

/**
 * The items of several iterables, up to `count` of them at a time, in the order of their arrival; none waits for the
 * next iterable. Returning early ends those that are under way.
 */
export async function* merge<T>(sources: AsyncIterator<AsyncIterable<T>>, count: number): AsyncGenerator<T> {
  const running = new Map<AsyncIterator<T> | 'sources', Promise<Step<T>>>()
  const run = (key: AsyncIterator<T> | 'sources', step: Promise<Step<T>>): void => {
    step.catch(() => undefined)
    running.set(key, step)
  }
  const advance = (iterator: AsyncIterator<T>): void =>
    run(
      iterator,
      iterator.next().then((result) => ({ iterator, result })),
    )
  try {
    for (let exhausted = false; ;) {
      if (!exhausted && !running.has('sources') && running.size < count)
        run(
          'sources',
          sources.next().then((source) => ({ iterator: undefined, source })),
        )
      if (running.size === 0) return
      const step = await Promise.race(running.values())
      if (step.iterator === undefined) {
        running.delete('sources')
        if (step.source.done === true) exhausted = true
        else advance(step.source.value[Symbol.asyncIterator]())
      } else if (step.result.done === true) {
        running.delete(step.iterator)
      } else {
        advance(step.iterator)
        yield step.result.value
      }
    }
  } finally {
    for (const key of running.keys()) if (key !== 'sources') key.return?.().catch(() => undefined)
    sources.return?.().catch(() => undefined)
  }
}

/** The items in arrays of at most `countMax`. */
export async function* inGroups<T>(items: Iterable<T> | AsyncIterable<T>, countMax: number): AsyncGenerator<T[]> {
  let group: T[] = []
  for await (const item of items) {
    group.push(item)
    if (group.length < countMax) continue
    yield group
    group = []
  }
  if (group.length > 0) yield group
}

/** The most requests at a time. */
export const CONCURRENCY_MAX = 1_000

/** Throws `RangeError` unless it is an integer from 1 to `max`. */
export function checkCount(name: string, value: number, max: number): number {
  if (!Number.isSafeInteger(value) || value < 1 || value > max)
    throw new RangeError(`${name} is ${value}; it must be an integer from 1 to ${max}`)
  return value
}
