/**
 * More than the systems on both sides take in for a client that has stopped reading: a client that took so much without
 * a pause reads on.
 */
const READING_AFTER_BYTES = 8 * 1_048_576
/**
 * A client that asks for the next chunk later than this has made a pause. Slow clients pause for seconds, until a part
 * of what the systems hold for them is gone. A machine with much to do can keep a client that reads on from its
 * processor for a tenth of a second and more.
 */
const PAUSE_MS = 400

/**
 * Whether a client reads on, judged by when it asks for the next chunk. Responses that come one after the other on one
 * connection may share it: a client that has read the last one fast will read the next one fast, too.
 */
export class ReadingPace {
  readonly #nowMs: () => number
  #passedOnAtMs: number
  #unpausedBytes = 0

  /** `nowMs`: a monotonic clock. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
    this.#passedOnAtMs = nowMs()
  }

  /** Whether the client has asked for nothing for a while. */
  get isPaused(): boolean {
    return this.#nowMs() - this.#passedOnAtMs > PAUSE_MS
  }

  /** Whether it has taken enough since its last pause to know that it reads on. */
  get isReading(): boolean {
    return this.#unpausedBytes >= READING_AFTER_BYTES
  }

  /** A response begins: the time since the last one was no pause. */
  began(): void {
    this.#passedOnAtMs = this.#nowMs()
  }

  /** The client asks for more, and has taken so many bytes since it asked last. */
  asked(takenBytes: number): void {
    this.#unpausedBytes = this.isPaused ? 0 : this.#unpausedBytes + takenBytes
  }

  /** A chunk goes to the client: the time until it asks again begins. */
  passedOn(): void {
    this.#passedOnAtMs = this.#nowMs()
  }
}
