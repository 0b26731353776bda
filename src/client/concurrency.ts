/** A signal of its own that also ends with the caller's. `unlink` lets go of the caller's. */
export interface LinkedAbort {
  readonly controller: AbortController
  readonly unlink: () => void
}

export function linkedAbort(signal: AbortSignal | undefined): LinkedAbort {
  const controller = new AbortController()
  const onAbort = (): void => controller.abort(signal?.reason)
  if (signal?.aborted === true) onAbort()
  signal?.addEventListener('abort', onAbort, { once: true })
  return { controller, unlink: () => signal?.removeEventListener('abort', onAbort) }
}

/** Runs `count` workers until all are done. The first failure, or the signal, ends the others at once and is what it rejects with. */
export async function runWorkers(count: number, signal: AbortSignal | undefined, worker: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const { controller, unlink } = linkedAbort(signal)
  const ended = new Promise<never>((_, reject) => controller.signal.addEventListener('abort', () => reject(controller.signal.reason as Error), { once: true }))
  ended.catch(() => undefined)
  try {
    controller.signal.throwIfAborted()
    const workers = Array.from({ length: count }, () => worker(controller.signal).catch((error: unknown) => controller.abort(error)))
    await Promise.race([Promise.all(workers), ended])
    controller.signal.throwIfAborted()
  } finally {
    unlink()
  }
}

/** What several iterables yield, up to `count` of them at a time, in the order in which it comes. Returning early ends those that are under way. */
export async function* merge<T>(sources: AsyncIterator<AsyncIterable<T>>, count: number): AsyncGenerator<T> {
  const running = new Map<AsyncIterator<T>, Promise<{ readonly iterator: AsyncIterator<T>; readonly result: IteratorResult<T> }>>()
  const advance = (iterator: AsyncIterator<T>): void => {
    const step = iterator.next().then((result) => ({ iterator, result }))
    step.catch(() => undefined)
    running.set(iterator, step)
  }
  try {
    for (let exhausted = false; ; ) {
      while (!exhausted && running.size < count) {
        const next = await sources.next()
        if (next.done === true) exhausted = true
        else advance(next.value[Symbol.asyncIterator]())
      }
      if (running.size === 0) return
      const { iterator, result } = await Promise.race(running.values())
      if (result.done === true) {
        running.delete(iterator)
      } else {
        advance(iterator)
        yield result.value
      }
    }
  } finally {
    for (const iterator of running.keys()) iterator.return?.().catch(() => undefined)
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

/** Throws `RangeError` unless it is an integer of 1 or more. */
export function checkCount(name: string, value: number): number {
  if (!Number.isSafeInteger(value) || value < 1) throw new RangeError(`${name} is ${value}; it must be an integer of 1 or more`)
  return value
}
