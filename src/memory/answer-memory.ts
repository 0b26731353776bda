/** The smallest room that an answer gets, however many there are: about what one read brings at least. */
const ROOM_BYTES_MIN = 32_768
/** One answer takes at most one in so many of the bytes that are left for each of its buffers; it has about four at a time. */
const ROOM_SHARE = 4
/** The buffer that was handed on last may still be on its way to the client, and so may the one before it. */
const ON_THEIR_WAY = 2

/**
 * What all answers under way hold in buffers, together. An answer asks before each read how large it may be: a share of what is left. So few answers
 * read in large pieces, and with every slow reader that holds on to some the pieces become smaller. Nobody waits for memory: a reader that has stopped
 * would keep those who read on waiting.
 */
export class AnswerMemory {
  readonly limitBytes: number
  readonly #onChange: (bytes: number) => void
  #heldBytes = 0

  /** `onChange` is told of each change, for who counts other memory as well. */
  constructor(limitBytes: number, onChange: (bytes: number) => void = () => undefined) {
    this.limitBytes = limitBytes
    this.#onChange = onChange
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  /** How large a buffer may be at the moment. */
  get roomBytes(): number {
    return Math.max(ROOM_BYTES_MIN, Math.floor((this.limitBytes - this.#heldBytes) / ROOM_SHARE))
  }

  /** Counts the buffers of one answer, until it ends. */
  open(): AnswerBuffers {
    return new AnswerBuffers(this, (bytes) => {
      this.#heldBytes += bytes
      this.#onChange(bytes)
    })
  }
}

/** The buffers of one answer. */
export class AnswerBuffers {
  readonly #memory: AnswerMemory
  readonly #count: (bytes: number) => void
  readonly #passedOn: number[] = []
  #heldBytes = 0
  #isOver = false

  constructor(memory: AnswerMemory, count: (bytes: number) => void) {
    this.#memory = memory
    this.#count = count
  }

  get roomBytes(): number {
    return this.#memory.roomBytes
  }

  /** Something was read or inflated. */
  hold(bytes: number): void {
    this.#add(bytes)
  }

  /** Something that was held is gone. */
  free(bytes: number): void {
    this.#add(-bytes)
  }

  /** Something that was held goes to the client: it counts until the next few have followed it. */
  passOn(bytes: number): void {
    this.#passedOn.push(bytes)
    if (this.#passedOn.length > ON_THEIR_WAY) this.free(this.#passedOn.shift() as number)
  }

  /** The answer is over: nothing of it counts any more. May be called more than once. */
  end(): void {
    if (this.#isOver) return
    this.#add(-this.#heldBytes)
    this.#isOver = true
  }

  #add(bytes: number): void {
    if (this.#isOver) return
    this.#heldBytes += bytes
    this.#count(bytes)
  }
}
