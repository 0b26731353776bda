export interface ReadAheadBounds<T> {
  /** Results that are under way or wait to be taken, at most. */
  readonly count: number
  /** Their size, together; a single larger one is still loaded. A function is asked each time. */
  readonly bytes?: number | (() => number)
  readonly bytesOf?: (item: T) => number
}

/**
 * Runs `load` for each item ahead of the consumer, within bounds, and yields the results in order. Returning early
 * waits for nothing: loads under way end on their own.
 */
export async function* readAhead<T, R>(
  items: AsyncIterable<T> | Iterable<T>,
  { count, bytes = Infinity, bytesOf = (): number => 0 }: ReadAheadBounds<T>,
  load: (item: T) => Promise<R>,
): AsyncGenerator<R> {
  const pending: { readonly result: Promise<R>; readonly bytes: number }[] = []
  let pendingBytes = 0
  for await (const item of items) {
    const itemBytes = bytesOf(item)
    while (
      pending.length > 0 &&
      (pending.length >= count || pendingBytes + itemBytes > (typeof bytes === 'number' ? bytes : bytes()))
    ) {
      const [first] = pending.splice(0, 1)
      yield await first.result
      pendingBytes -= first.bytes
    }
    const result = load(item)
    // The error is thrown where the result is taken; until then it must not count as unhandled.
    result.catch(() => undefined)
    pending.push({ result, bytes: itemBytes })
    pendingBytes += itemBytes
  }
  for (const { result } of pending) yield await result
}
