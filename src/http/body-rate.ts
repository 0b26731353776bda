import { StowageError } from '../errors.ts'

/** A body must bring so much in each window of this length. */
const WINDOW_MS = 20_000

/**
 * Enforces a minimum rate of a body, so that a client cannot hold the memory of its request forever by sending a byte
 * now and then. Only the time counts in which the server waits for the client: while the server itself is busy, the
 * client is not slow.
 */
export class BodyRate {
  readonly #bytesPerSecondMin: number
  #waitedMs = 0
  #cameBytes = 0

  constructor(bytesPerSecondMin: number) {
    this.#bytesPerSecondMin = bytesPerSecondMin
  }

  waited(ms: number): void {
    this.#waitedMs += ms
  }

  /** Throws `request_aborted` at the end of a window that brought too little. */
  came(bytes: number): void {
    this.#cameBytes += bytes
    if (this.#waitedMs < WINDOW_MS) return
    const bytesMin = (this.#bytesPerSecondMin * this.#waitedMs) / 1_000
    if (this.#cameBytes < bytesMin) {
      throw new StowageError(
        'request_aborted',
        `only ${this.#cameBytes} bytes of the body arrived in ${Math.round(this.#waitedMs)} ms; the minimum is ${this.#bytesPerSecondMin} bytes a second`,
      )
    }
    this.#waitedMs = 0
    this.#cameBytes = 0
  }
}
