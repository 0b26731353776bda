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
  hooks: RelayHooks<T> = {},
): AsyncIterableIterator<R> {
  return new Relay(open, hooks, convert)
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

  /** Waits for nothing but the source, and for a hook that waits: long answers pass through several relays. */
  async next(): Promise<IteratorResult<R, undefined>> {
    while (!this.#isOver) {
      let isOfSource = false
      try {
        const asked = this.#hooks.before?.()
        if (asked !== undefined) await asked
        this.#source ??= this.#open()[Symbol.asyncIterator]()
        isOfSource = true
        const result = await this.#source.next()
        isOfSource = false
        const value = this.#passedOn(result)
        if (value !== undefined) return { done: false, value }
      } catch (error) {
        throw await (isOfSource ? this.#sourceFailed(error) : this.#hookFailed(error))
      }
    }
    return { done: true, value: undefined }
  }

  async return(): Promise<IteratorResult<R, undefined>> {
    await this.#close()
    return { done: true, value: undefined }
  }

  #passedOn({ done, value }: IteratorResult<T, unknown>): R | undefined {
    if (done !== true) {
      this.#hooks.each?.(value)
      return this.#convert(value)
    }
    this.#hooks.completed?.()
    this.#end()
    return undefined
  }

  async #sourceFailed(error: unknown): Promise<unknown> {
    this.#end()
    return (await this.#hooks.reasonOf?.(error)) ?? error
  }

  async #hookFailed(error: unknown): Promise<unknown> {
    await this.#close()
    return error
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
