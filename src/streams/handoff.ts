/** Tells a writer that its chunk is done with. */
export type Done = (error?: Error | null) => void

/** Tells a stream when something that it waits for is over. */
export function notifyWhenSettled(work: Promise<unknown>, tell: Done): void {
  work.then(() => tell(), tell)
}

interface Chunk<T> {
  readonly value: T
  readonly done: Done
}

/**
 * Hands chunks from a writer to one reader, one at a time. A chunk is done with when the reader asks for the next one,
 * so that the reader sets the pace.
 */
export class Handoff<T> implements AsyncIterableIterator<T> {
  #offered: Chunk<T> | undefined
  #taken: Chunk<T> | undefined
  #reader: ((result: IteratorResult<T>) => void) | undefined
  #isEnded = false

  write(value: T, done: Done): void {
    const chunk = { value, done }
    const reader = this.#reader
    if (reader === undefined) {
      this.#offered = chunk
      return
    }
    this.#reader = undefined
    this.#taken = chunk
    reader({ done: false, value })
  }

  /** No more chunks come. */
  end(): void {
    this.#isEnded = true
    this.#reader?.({ done: true, value: undefined })
    this.#reader = undefined
  }

  next(): Promise<IteratorResult<T>> {
    const before = this.#taken
    this.#taken = undefined
    // The writer may write the next chunk before this returns.
    before?.done()
    const chunk = this.#offered
    if (chunk !== undefined) {
      this.#offered = undefined
      this.#taken = chunk
      return Promise.resolve({ done: false, value: chunk.value })
    }
    if (this.#isEnded) return Promise.resolve({ done: true, value: undefined })
    return new Promise((resolve) => (this.#reader = resolve))
  }

  /** The reader wants no more. A chunk that it holds stays unacknowledged: the stream behind it is destroyed. */
  return(): Promise<IteratorResult<T>> {
    this.#offered = undefined
    this.end()
    return Promise.resolve({ done: true, value: undefined })
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}
