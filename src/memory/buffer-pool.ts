import { type Environment, REAL_ENVIRONMENT } from '../environment.ts'
import { mappedBuffer } from './mapped-buffer.ts'

/** Smaller buffers are allocated anew each time: they are little garbage. */
const SIZE_BYTES_MIN = 4_096
/** Capacities are multiples of this. */
const CAPACITY_STEP_BYTES_MIN = 4_096
/** Large capacities: this many from one power of two to the next, so that a buffer also serves sizes near its own. */
const CAPACITIES_BETWEEN_POWERS = 16
/** A buffer is not used where more than this part of it would stay empty. */
const EMPTY_SHARE_MAX = 0.5
/** Memory that was idle for longer than this is less often wanted again than it is in the way. */
const SHORT_MS = 5_000

export interface IdleBounds {
  /** Bytes that are kept for the next users, at most. A function is asked each time that something is given back. */
  readonly bytesMax: number | (() => number)
  /** The part of it that is kept for longer than a few seconds: all of it by default. */
  readonly lastingBytesMax?: number
  readonly environment?: Pick<Environment, 'monotonicMs'>
}

interface IdleBuffer {
  readonly buffer: ArrayBuffer
  readonly sinceMs: number
}

/**
 * Buffers for large reads and for uploads, used again and again. A buffer that is left to the garbage collector costs
 * twice: V8 collects the whole heap for every few dozen megabytes of them, and what the allocator of the system once took
 * for them stays resident. A buffer that is lent and never given back is garbage like any other.
 */
export class BufferPool {
  readonly #bounds: Required<IdleBounds>
  #idleBytes = 0
  /** The one that was given back last is the last. */
  readonly #idle: IdleBuffer[] = []
  /** Of each buffer that is lent, the bytes that were not given back yet. */
  readonly #lentBytes = new WeakMap<ArrayBufferLike, number>()

  constructor(bounds: number | IdleBounds) {
    const given = typeof bounds === 'number' ? { bytesMax: bounds } : bounds
    this.#bounds = { lastingBytesMax: Infinity, environment: REAL_ENVIRONMENT, ...given }
  }

  get idleBytes(): number {
    return this.#idleBytes
  }

  /** Memory with undefined content; `undefined` if it is too little to be worth it. */
  take(sizeBytes: number): Uint8Array | undefined {
    if (sizeBytes < SIZE_BYTES_MIN) return undefined
    const buffer = this.#takeIdle(sizeBytes) ?? allocated(sizeBytes)
    this.#lentBytes.set(buffer, sizeBytes)
    return new Uint8Array(buffer, 0, sizeBytes)
  }

  /** The same; little memory is allocated anew. */
  takeAny(sizeBytes: number): Uint8Array {
    return this.take(sizeBytes) ?? Buffer.allocUnsafeSlow(sizeBytes)
  }

  /**
   * Says that nobody reads these bytes any more, nor writes into them. Once that was said of all bytes that were taken
   * together, their memory may be lent again. Bytes that were not lent are left alone. Each byte may be given back once.
   */
  giveBack(bytes: Uint8Array): void {
    const { buffer } = bytes
    const lentBytes = this.#lentBytes.get(buffer)
    if (lentBytes === undefined) return
    if (bytes.length < lentBytes) {
      this.#lentBytes.set(buffer, lentBytes - bytes.length)
      return
    }
    this.#lentBytes.delete(buffer)
    this.#idle.push({ buffer: buffer as ArrayBuffer, sinceMs: this.#bounds.environment.monotonicMs() })
    this.#idleBytes += buffer.byteLength
    this.#trim()
  }

  #trim(): void {
    const { bytesMax: bound, lastingBytesMax, environment } = this.#bounds
    const bytesMax = typeof bound === 'number' ? bound : bound()
    const lastingSinceMs = environment.monotonicMs() - SHORT_MS
    for (let oldest = this.#idle.at(0); oldest !== undefined; oldest = this.#idle.at(0)) {
      const isLasting = oldest.sinceMs < lastingSinceMs
      if (this.#idleBytes <= (isLasting ? Math.min(bytesMax, lastingBytesMax) : bytesMax)) return
      this.#idle.shift()
      this.#idleBytes -= oldest.buffer.byteLength
    }
  }

  #takeIdle(sizeBytes: number): ArrayBuffer | undefined {
    const at = this.#idle.findLastIndex(
      ({ buffer: { byteLength } }) => byteLength >= sizeBytes && byteLength * EMPTY_SHARE_MAX < sizeBytes,
    )
    if (at === -1) return undefined
    const [{ buffer }] = this.#idle.splice(at, 1)
    this.#idleBytes -= buffer.byteLength
    return buffer
  }
}

function allocated(sizeBytes: number): ArrayBuffer {
  const stepBytes = Math.max(CAPACITY_STEP_BYTES_MIN, 2 ** Math.floor(Math.log2(sizeBytes)) / CAPACITIES_BETWEEN_POWERS)
  return mappedBuffer(Math.ceil(sizeBytes / stepBytes) * stepBytes)
}
