/** What happens around the items of a relay. What a hook throws ends the relay and closes its source. */
export interface RelayHooks<T> {
  /** Before each item is asked for. */
  readonly before?: () => Promise<void> | void
  /** With each item, before it is passed on. */
  readonly each?: (item: T) => void
  /** The source has come to its end. */
  readonly completed?: () => void
  /** The error that is thrown instead of one of the source. */
  readonly reasonOf?: (error: unknown) => Promise<unknown>
  /** Nothing follows: after the end, an error or an early return. Called once. */
  readonly ended?: () => void
}

/**
 * The same items, with hooks around them. An async generator would say the same in fewer lines, but V8 keeps values in
 * the frame of a suspended generator that its code uses no more: with several generators in a row, each of hundreds of
 * slow responses held several chunks that were long sent. A relay holds nothing between two items. `open` is called
 * with the first item that is asked for.
 */
export function relayed<T>(open: () => AsyncIterable<T>, hooks: RelayHooks<T>): AsyncIterableIterator<T> {
  return new Relay(open, hooks, (item) => item)
}

/**
 * What `convert` makes of each item, with nothing held between two of them. Items without a result are left out. What it
 * throws closes the source.
 */
export function converted<T, R>(
  open: () => AsyncIterable<T>,
  convert: (item: T) => R | undefined,
): AsyncIterableIterator<R> {
  return new Relay(open, {}, convert)
}

class Relay<T, R> implements AsyncIterableIterator<R> {
  readonly #open: () => AsyncIterable<T>
  readonly #hooks: RelayHooks<T>
  readonly #convert: (item: T) => R | undefined
  #source: AsyncIterator<T> | undefined
  #isOver = false

  constructor(open: () => AsyncIterable<T>, hooks: RelayHooks<T>, convert: (item: T) => R | undefined) {
    this.#open = open
    this.#hooks = hooks
    this.#convert = convert
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<R, undefined>> {
    if (this.#isOver) return { done: true, value: undefined }
    for (;;) {
      const { done, value } = await this.#nextOfSource()
      if (done === true) {
        this.#end()
        return { done, value: undefined }
      }
      if (value !== undefined) return { done: false, value }
    }
  }

  async return(): Promise<IteratorResult<R, undefined>> {
    await this.#close()
    return { done: true, value: undefined }
  }

  async #nextOfSource(): Promise<IteratorResult<R | undefined, undefined>> {
    try {
      await this.#hooks.before?.()
      this.#source ??= this.#open()[Symbol.asyncIterator]()
    } catch (error) {
      await this.#close()
      throw error
    }
    const result = await this.#source.next().catch(async (error: unknown) => {
      this.#end()
      throw (await this.#hooks.reasonOf?.(error)) ?? error
    })
    try {
      if (result.done === true) {
        this.#hooks.completed?.()
        return { done: true, value: undefined }
      }
      this.#hooks.each?.(result.value)
      return { done: false, value: this.#convert(result.value) }
    } catch (error) {
      await this.#close()
      throw error
    }
  }

  async #close(): Promise<void> {
    if (this.#isOver) return
    try {
      await this.#source?.return?.()
    } finally {
      this.#end()
    }
  }

  #end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#hooks.ended?.()
  }
}
