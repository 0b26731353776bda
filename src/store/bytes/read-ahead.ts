export interface ReadAheadBounds<T> {
  /** Results that are under way or wait to be taken, at most. */
  readonly count: number
  /** Their size, together; a single larger one is still loaded. A function is asked each time. */
  readonly bytes?: number | (() => number)
  readonly bytesOf?: (item: T) => number
}

/**
 * Runs `load` for each item ahead of the consumer, within bounds, and yields the results in order. Returning early
 * waits for nothing: loads under way end on their own. No result is held after it was taken, as the frame of a generator
 * would.
 */
export function readAhead<T, R>(
  items: AsyncIterable<T> | Iterable<T>,
  bounds: ReadAheadBounds<T>,
  load: (item: T) => Promise<R>,
): AsyncIterableIterator<R> {
  return new ReadAhead(items, bounds, load)
}

interface Loading<R> {
  readonly result: Promise<R>
  readonly bytes: number
}

class ReadAhead<T, R> implements AsyncIterableIterator<R> {
  readonly #items: AsyncIterator<T> | Iterator<T>
  readonly #bounds: ReadAheadBounds<T>
  readonly #load: (item: T) => Promise<R>
  readonly #pending: Loading<R>[] = []
  #pendingBytes = 0
  /** Of the result that was taken last: the consumer may still hold it. */
  #takenBytes = 0
  /** The item that did not fit yet. */
  #waiting: { readonly item: T } | undefined
  #isOver = false

  constructor(items: AsyncIterable<T> | Iterable<T>, bounds: ReadAheadBounds<T>, load: (item: T) => Promise<R>) {
    this.#items = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]()
    this.#bounds = bounds
    this.#load = load
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<R, undefined>> {
    this.#pendingBytes -= this.#takenBytes
    this.#takenBytes = 0
    while (await this.#loadNext());
    const first = this.#pending.shift()
    if (first === undefined) return { done: true, value: undefined }
    this.#takenBytes = first.bytes
    try {
      return { done: false, value: await first.result }
    } catch (error) {
      await this.return()
      throw error
    }
  }

  async return(): Promise<IteratorResult<R, undefined>> {
    this.#pending.length = 0
    this.#waiting = undefined
    if (!this.#isOver) {
      this.#isOver = true
      await this.#items.return?.()
    }
    return { done: true, value: undefined }
  }

  /** Begins one more load; false if there is no room for it, or nothing left to load. */
  async #loadNext(): Promise<boolean> {
    this.#waiting ??= await this.#nextItem()
    if (this.#waiting === undefined) return false
    const { item } = this.#waiting
    const bytes = this.#bounds.bytesOf?.(item) ?? 0
    if (this.#pending.length > 0 && !this.#hasRoom(bytes)) return false
    this.#waiting = undefined
    const result = this.#load(item)
    // The error is thrown where the result is taken; until then it must not count as unhandled.
    result.catch(() => undefined)
    this.#pending.push({ result, bytes })
    this.#pendingBytes += bytes
    return true
  }

  async #nextItem(): Promise<{ readonly item: T } | undefined> {
    if (this.#isOver) return undefined
    try {
      const { done, value } = await this.#items.next()
      this.#isOver = done === true
      return done === true ? undefined : { item: value }
    } catch (error) {
      this.#isOver = true
      this.#pending.length = 0
      throw error
    }
  }

  #hasRoom(bytes: number): boolean {
    const { count, bytes: bytesMax = Infinity } = this.#bounds
    const isFewer = this.#pending.length < count
    return isFewer && this.#pendingBytes + bytes <= (typeof bytesMax === 'number' ? bytesMax : bytesMax())
  }
}
