/**
 * Runs `load` for each item with at most `depth` under way or waiting to be taken, and yields the results in order. Returning early waits for nothing:
 * what is under way is left to finish on its own.
 */
export async function* readAhead<T, R>(items: AsyncIterable<T> | Iterable<T>, depth: number, load: (item: T) => Promise<R>): AsyncGenerator<R> {
  const pending: Promise<R>[] = []
  for await (const item of items) {
    const loading = load(item)
    // An error is thrown where the result is taken; until then it must not count as unhandled.
    loading.catch(() => undefined)
    pending.push(loading)
    if (pending.length >= depth) yield await (pending.shift() as Promise<R>)
  }
  for (const loading of pending) yield await loading
}
