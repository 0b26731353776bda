import { type Environment, REAL_ENVIRONMENT } from '../environment.ts'
import { ReadingPace } from '../async/reading-pace.ts'
import type { MemoryLease } from './memory-lease.ts'
import { BufferPool } from './buffer-pool.ts'

/** The smallest room that a response gets, however many there are: about the smallest useful read. */
const ROOM_BYTES_MIN = 40_960
/** With less room than this an answer holds one buffer at a time: nothing is read or made ahead. */
export const AHEAD_ROOM_BYTES_MIN: number = 2 * ROOM_BYTES_MIN
/** One buffer takes at most one in so many of the bytes that are left: an answer has about four at a time. */
const ROOM_SHARE = 4
/** Of a response that is alone: nobody else takes some of the rest meanwhile. Each read of a distant store has its price. */
const ROOM_SHARE_ALONE = 2
/** And at most one in so many of the equal part that each answer under way has of all bytes. */
const EQUAL_SHARE = 2
/** The buffer that was handed on last may still be on its way to the client, and so may the one before it. */
const ON_THEIR_WAY = 2
/** Those that read on share at most this part of the bytes once more. */
const FAST_SHARE = 2
/**
 * How many buffers a response that is alone reads ahead. Beside others it reads one: their work fills the time of its
 * reads, and all buffers are larger.
 */
const READS_AHEAD_ALONE = 2
/** The basic memory of every response, leased before the response begins. */
export const ANSWER_BYTES = 65_536

/** Answers that share one number of bytes. */
class Pool {
  heldBytes = 0
  readonly #limitBytes: number

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes
  }

  roomBytes(share = ROOM_SHARE): number {
    return Math.floor(Math.min((this.#limitBytes - this.heldBytes) / share, this.#limitBytes / ROOM_SHARE))
  }
}

/**
 * The buffers that all responses under way hold beyond `ANSWER_BYTES` each, together. A response asks before each read
 * how large it may be: a share of the rest, and of its part if all had the same. So few responses read in large pieces,
 * one alone in the largest, and among many each holds one small buffer. Nobody waits for memory: a reader that has
 * stopped would block the others. A client that has read much without a pause shares the same number of bytes once more
 * with others like it, so that hundreds of stopped readers do not slow it down; the next response on its connection
 * does so from the start. When requests wait for memory, answers whose clients pause give their leases back, and only
 * what they really hold counts.
 */
export class AnswerMemory {
  readonly limitBytes: number
  /** The memory into which answers read. */
  readonly bufferPool: BufferPool
  readonly #onChange: (bytes: number) => void
  readonly #environment: Pick<Environment, 'monotonicMs'>
  readonly #all: Pool
  readonly #fast: Pool
  readonly #open = new Set<AnswerBuffers>()
  readonly #paces = new WeakMap<object, ReadingPace>()

  /** `onChange` receives each change, for callers that count other memory as well. */
  constructor(
    limitBytes: number,
    onChange: (bytes: number) => void = () => undefined,
    environment: Pick<Environment, 'monotonicMs'> = REAL_ENVIRONMENT,
    bufferPool: BufferPool = new BufferPool(limitBytes),
  ) {
    this.limitBytes = limitBytes
    this.bufferPool = bufferPool
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
    const equal = Math.floor(this.limitBytes / (EQUAL_SHARE * Math.max(1, this.#open.size)))
    const share = this.#open.size > 1 ? ROOM_SHARE : ROOM_SHARE_ALONE
    const room = Math.max(ROOM_BYTES_MIN, Math.min(this.#all.roomBytes(share), equal))
    return isFast ? Math.max(room, this.#fast.roomBytes()) : room
  }

  /** How many buffers an answer may read ahead. */
  get readsAhead(): number {
    return this.#open.size > 1 ? 1 : READS_AHEAD_ALONE
  }

  /** Counts the buffers of one answer, until it ends. */
  open(): AnswerBuffers {
    const buffers: AnswerBuffers = new AnswerBuffers(this, {
      count: (bytes, isFast) => {
        const pool = isFast ? this.#fast : this.#all
        pool.heldBytes += bytes
        this.#onChange(bytes)
      },
      countBasic: this.#onChange,
      ended: () => this.#open.delete(buffers),
      paceOf: (connection) => this.#paceOf(connection),
    })
    this.#open.add(buffers)
    return buffers
  }

  #paceOf(connection: object | undefined): ReadingPace {
    const known = connection && this.#paces.get(connection)
    const pace = known ?? new ReadingPace(() => this.#environment.monotonicMs())
    if (connection !== undefined) this.#paces.set(connection, pace)
    return pace
  }

  /** Answers whose clients pause at the moment give back what they lease and do not hold. */
  shrinkPaused(): void {
    for (const buffers of this.#open) buffers.shrinkIfPaused()
  }
}

interface Counting {
  /** Bytes beyond `ANSWER_BYTES`. */
  readonly count: (bytes: number, isFast: boolean) => void
  /** The others, of answers that gave their lease back. */
  readonly countBasic: (bytes: number) => void
  readonly ended: () => void
  readonly paceOf: (connection: object | undefined) => ReadingPace
}

/** The buffers of one answer. */
export class AnswerBuffers {
  readonly #memory: AnswerMemory
  readonly #counting: Counting
  readonly #passedOn: number[] = []
  #heldBytes = 0
  #countedBytes = 0
  #countedBasicBytes = 0
  /** Covers `ANSWER_BYTES`, unless it was given back. */
  #lease: MemoryLease | undefined
  #isLeased = false
  #isOver = false
  #pace: ReadingPace
  #hasBegun = false
  #isFast = false

  constructor(memory: AnswerMemory, counting: Counting) {
    this.#memory = memory
    this.#counting = counting
    this.#pace = counting.paceOf(undefined)
  }

  /**
   * Leases `ANSWER_BYTES`, and what else the response holds until its end. Call it once, before the response begins.
   * Rejects as `MemoryLease.hold` does.
   */
  async lease(memory: MemoryLease, elseBytes = 0): Promise<void> {
    await memory.hold(ANSWER_BYTES + elseBytes)
    this.#lease = memory
    this.#isLeased = true
    this.#pace = this.#counting.paceOf(memory.connection)
    this.#become(this.#pace.isReading)
  }

  get roomBytes(): number {
    return this.#memory.roomBytes(this.#isFast)
  }

  /** The size of a buffer that may be read or made ahead at the moment, beside the buffer at hand. */
  get aheadBytes(): number {
    const { roomBytes } = this
    return roomBytes < AHEAD_ROOM_BYTES_MIN ? 0 : roomBytes
  }

  /** How many of them may be read ahead. */
  get readsAhead(): number {
    return this.#memory.readsAhead
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
    if (!this.#hasBegun) this.#pace.began()
    this.#hasBegun = true
    const { isPaused } = this.#pace
    this.#pace.asked(bytes)
    this.#pace.passedOn()
    this.#become(this.#pace.isReading)
    if (!isPaused && !this.#isLeased && this.#lease?.tryHold(ANSWER_BYTES) === true) {
      this.#isLeased = true
      this.#countBasic()
    }
  }

  /** Gives the lease back while the client pauses: the bytes that are on their way to it count instead. */
  shrinkIfPaused(): void {
    if (!this.#isLeased || this.#passedOn.length === 0 || !this.#pace.isPaused) return
    this.#isLeased = false
    this.#countBasic()
    this.#lease?.free(ANSWER_BYTES)
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
    this.#countBasic()
    const counted = Math.max(0, this.#heldBytes - ANSWER_BYTES)
    if (counted === this.#countedBytes) return
    this.#counting.count(counted - this.#countedBytes, this.#isFast)
    this.#countedBytes = counted
  }

  #countBasic(): void {
    const isCounted = this.#lease !== undefined && !this.#isLeased
    const counted = isCounted ? Math.min(this.#heldBytes, ANSWER_BYTES) : 0
    if (counted === this.#countedBasicBytes) return
    this.#counting.countBasic(counted - this.#countedBasicBytes)
    this.#countedBasicBytes = counted
  }
}
