import { type Environment, REAL_ENVIRONMENT } from '../environment.ts'

/** The smallest room that a response gets, however many there are: about the smallest useful read. */
const ROOM_BYTES_MIN = 40_960
/** With less room than this an answer holds one buffer at a time: nothing is read or made ahead. */
export const AHEAD_ROOM_BYTES_MIN: number = 2 * ROOM_BYTES_MIN
/** One buffer takes at most one in so many of the bytes that are left: an answer has about four at a time. */
const ROOM_SHARE = 4
/** And at most one in so many of the equal part that each answer under way has of all bytes. */
const EQUAL_SHARE = 2
/** The buffer that was handed on last may still be on its way to the client, and so may the one before it. */
const ON_THEIR_WAY = 2
/**
 * More than the systems on both sides take in for a client that has stopped reading. A client that took so much without
 * a pause reads on.
 */
const FAST_AFTER_BYTES = 16 * 1_048_576
/** Those that read on share at most this part of the bytes once more. */
const FAST_SHARE = 2
/** A client that asks for the next buffer later than this has made a pause. */
const PAUSE_MS = 100

/** The basic memory of every response: its request leases it before the response begins. */
export const ANSWER_BYTES = 65_536

/** Answers that share one number of bytes. */
class Pool {
  heldBytes = 0
  readonly #limitBytes: number

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes
  }

  get roomBytes(): number {
    return Math.floor((this.#limitBytes - this.heldBytes) / ROOM_SHARE)
  }
}

/**
 * The buffers that all responses under way hold beyond `ANSWER_BYTES` each, together. A response asks before each read
 * how large it may be: a share of the rest, and of its part if all had the same. So few responses read in large pieces,
 * and among many each holds one small buffer. Nobody waits for memory: a reader that has stopped would block the
 * others. A client that has read much without a pause shares the same number of bytes once more with others like it, so
 * that hundreds of stopped readers do not slow it down.
 */
export class AnswerMemory {
  readonly limitBytes: number
  readonly #onChange: (bytes: number) => void
  readonly #environment: Pick<Environment, 'monotonicMs'>
  readonly #all: Pool
  readonly #fast: Pool
  #answers = 0

  /** `onChange` receives each change, for callers that count other memory as well. */
  constructor(
    limitBytes: number,
    onChange: (bytes: number) => void = () => undefined,
    environment: Pick<Environment, 'monotonicMs'> = REAL_ENVIRONMENT,
  ) {
    this.limitBytes = limitBytes
    this.#environment = environment
    this.#onChange = onChange
    this.#all = new Pool(limitBytes)
    this.#fast = new Pool(Math.floor(limitBytes / FAST_SHARE))
  }

  get heldBytes(): number {
    return this.#all.heldBytes + this.#fast.heldBytes
  }

  /** How large a buffer may be at the moment. */
  roomBytes(isFast = false): number {
    const equal = Math.floor(this.limitBytes / (EQUAL_SHARE * Math.max(1, this.#answers)))
    const room = Math.max(ROOM_BYTES_MIN, Math.min(this.#all.roomBytes, equal))
    return isFast ? Math.max(room, this.#fast.roomBytes) : room
  }

  /** Counts the buffers of one answer, until it ends. */
  open(): AnswerBuffers {
    this.#answers++
    return new AnswerBuffers(this, {
      count: (bytes, isFast) => {
        const pool = isFast ? this.#fast : this.#all
        pool.heldBytes += bytes
        this.#onChange(bytes)
      },
      ended: () => this.#answers--,
      nowMs: () => this.#environment.monotonicMs(),
    })
  }
}

interface Counting {
  readonly count: (bytes: number, isFast: boolean) => void
  readonly ended: () => void
  readonly nowMs: () => number
}

/** The buffers of one answer. */
export class AnswerBuffers {
  readonly #memory: AnswerMemory
  readonly #counting: Counting
  readonly #passedOn: number[] = []
  #heldBytes = 0
  #countedBytes = 0
  #isOver = false
  /** Bytes that the client has taken since its last pause. */
  #withoutPauseBytes = 0
  #passedOnAtMs: number
  #isFast = false

  constructor(memory: AnswerMemory, counting: Counting) {
    this.#memory = memory
    this.#counting = counting
    this.#passedOnAtMs = counting.nowMs()
  }

  get roomBytes(): number {
    return this.#memory.roomBytes(this.#isFast)
  }

  /** How much may be read or made ahead at the moment, beside the buffer at hand. */
  get aheadBytes(): number {
    const { roomBytes } = this
    return roomBytes < AHEAD_ROOM_BYTES_MIN ? 0 : roomBytes
  }

  /** Something was read or inflated. */
  hold(bytes: number): void {
    this.#add(bytes)
  }

  /** Something that was held is gone. */
  free(bytes: number): void {
    this.#add(-bytes)
  }

  /** Held bytes go to the client: they count until the next few have followed. */
  passOn(bytes: number): void {
    this.#passedOn.push(bytes)
    if (this.#passedOn.length > (this.aheadBytes === 0 ? 1 : ON_THEIR_WAY)) this.free(this.#passedOn.shift() as number)
    const nowMs = this.#counting.nowMs()
    this.#withoutPauseBytes = nowMs - this.#passedOnAtMs > PAUSE_MS ? 0 : this.#withoutPauseBytes + bytes
    this.#passedOnAtMs = nowMs
    this.#become(this.#withoutPauseBytes >= FAST_AFTER_BYTES)
  }

  /** The answer is over: nothing of it counts any more. May be called more than once. */
  end(): void {
    if (this.#isOver) return
    this.#add(-this.#heldBytes)
    this.#isOver = true
    this.#counting.ended()
  }

  #become(isFast: boolean): void {
    if (this.#isFast === isFast) return
    this.#counting.count(-this.#countedBytes, this.#isFast)
    this.#counting.count(this.#countedBytes, isFast)
    this.#isFast = isFast
  }

  #add(bytes: number): void {
    if (this.#isOver) return
    this.#heldBytes += bytes
    const counted = Math.max(0, this.#heldBytes - ANSWER_BYTES)
    if (counted === this.#countedBytes) return
    this.#counting.count(counted - this.#countedBytes, this.#isFast)
    this.#countedBytes = counted
  }
}
