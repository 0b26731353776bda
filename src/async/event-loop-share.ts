import { REAL_ENVIRONMENT, type Environment } from '../environment.ts'
import { ReadingPace } from './reading-pace.ts'
import { relayed } from './relay.ts'

/** How long responses may keep one turn of the event loop busy. A turn costs a few tens of microseconds. */
const SHARE_MS = 4
/** With more responses than this that may turn out to be stopped ones, the others come first. */
const UNPROVEN_MAX = 64
/** Then a turn has time for so many of them: a client that reads on asks for its next chunk a turn later. */
const UNPROVEN_IN_TURN_MAX = 2
/** Clients that read on get so many bytes for each byte of the others. */
const READING_WEIGHT = 8
/** The size that a first chunk is taken to have. */
const FIRST_CHUNK_BYTES = 65_536

/** One response that takes turns. */
interface Taker {
  /** Grows with each response that begins. */
  readonly begun: number
  /** Whether its client has taken enough to know that it reads on. */
  isReading: boolean
  /** The size of its last chunk: the next one will be about as large. */
  chunkBytes: number
}

interface Waiting {
  readonly taker: Taker
  /** Grows with each turn that somebody waits for. */
  readonly ticket: number
  readonly go: () => void
}

/**
 * The share of one turn of the event loop that all responses of a service may take. Node accepts one connection in a
 * turn: if each of 500 responses makes a piece in every turn, a turn takes half a second, and the last of 20 new
 * connections is seen after ten. With this bound, a response that finds the share used up continues in a later turn,
 * first come, first served, so turns stay short with any number of responses.
 *
 * The system takes some megabytes for each client, also for one that reads nothing. If hundreds of them begin at once,
 * filling these buffers keeps the processor busy for seconds. Then clients that have proved to read on come first, and
 * of the others the newest and the oldest in turn, two in a turn of the event loop: most of the time that a chunk takes
 * is spent after it was asked for, on reading and sending it, and a client that reads on would wait for all of them.
 */
export class EventLoopShare {
  readonly #environment: Environment
  readonly #reading = new Set<Waiting>()
  readonly #unproven = new Set<Waiting>()
  #begun = 0
  #tickets = 0
  /** What those that read on got more than their weight says, in bytes of the others. */
  #leadBytes = 0
  #isNewestNext = true
  #isServing = false
  #turnBeganMs: number | undefined
  #unprovenInTurn = 0

  constructor(environment: Environment = REAL_ENVIRONMENT) {
    this.#environment = environment
  }

  /** The same chunks, each asked for in a turn that has time for it. */
  paced(chunks: AsyncIterable<Uint8Array>): AsyncIterableIterator<Uint8Array> {
    const taker: Taker = { begun: this.#begun++, isReading: false, chunkBytes: FIRST_CHUNK_BYTES }
    const pace = new ReadingPace(() => this.#environment.monotonicMs())
    let takenBytes = 0
    return relayed(() => chunks, {
      before: () => {
        pace.asked(takenBytes)
        taker.isReading = pace.isReading
        return this.#turn(taker)
      },
      each: ({ length: bytes }) => {
        takenBytes = taker.chunkBytes = bytes
        pace.passedOn()
      },
    })
  }

  #turn(taker: Taker): Promise<void> {
    return new Promise((go) => {
      const waiting = taker.isReading ? this.#reading : this.#unproven
      waiting.add({ taker, ticket: this.#tickets++, go })
      if (!this.#isServing) void this.#serve()
    })
  }

  /** One after the other: a tick comes only when all immediate work of the one before is done. */
  async #serve(): Promise<void> {
    this.#isServing = true
    while (this.#reading.size + this.#unproven.size > 0) {
      while (this.#isUsedUp()) await this.#environment.nextTurn()
      const next = this.#next()
      this.#count(next.taker)
      this.#reading.delete(next)
      this.#unproven.delete(next)
      next.go()
      await new Promise<void>((resolve) => process.nextTick(resolve))
    }
    this.#isServing = false
  }

  /** Before the chunk is there: a whole turn may pass until then. */
  #count({ isReading, chunkBytes }: Taker): void {
    if (!isReading) this.#unprovenInTurn++
    this.#leadBytes += isReading ? chunkBytes / READING_WEIGHT : -chunkBytes
  }

  #next(): Waiting {
    const [reading] = this.#reading as Set<Waiting | undefined>
    const [unproven] = this.#unproven as Set<Waiting | undefined>
    if (unproven === undefined) return reading as Waiting
    if (this.#unproven.size <= UNPROVEN_MAX) {
      this.#leadBytes = 0
      return reading === undefined || unproven.ticket < reading.ticket ? unproven : reading
    }
    if (reading !== undefined && this.#leadBytes <= 0) return reading
    this.#isNewestNext = !this.#isNewestNext
    return this.#isNewestNext ? newestOf(this.#unproven) : unproven
  }

  #isUsedUp(): boolean {
    if (this.#turnBeganMs !== undefined)
      return this.#environment.monotonicMs() - this.#turnBeganMs > SHARE_MS || this.#hasServedUnproven()
    this.#turnBeganMs = this.#environment.monotonicMs()
    this.#unprovenInTurn = 0
    void this.#environment.nextTurn().then(() => (this.#turnBeganMs = undefined))
    return false
  }

  /** Whether those that will come soon should find a turn short. */
  #hasServedUnproven(): boolean {
    return (
      this.#reading.size === 0 && this.#unproven.size > UNPROVEN_MAX && this.#unprovenInTurn >= UNPROVEN_IN_TURN_MAX
    )
  }
}

function newestOf(waiting: Iterable<Waiting>): Waiting {
  let newest: Waiting | undefined
  for (const one of waiting) if (newest === undefined || one.taker.begun > newest.taker.begun) newest = one
  return newest as Waiting
}
