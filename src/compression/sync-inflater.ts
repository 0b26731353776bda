import { constants, createInflateRaw } from 'node:zlib'
import type { InflateRaw } from 'node:zlib'

/**
 * What lies behind the streams of `node:zlib`, in every version of Node that there is, and not in its documentation.
 * After a call the first number of the state is what remains of the output, and the second what remains of the input.
 */
interface ZlibInternals {
  readonly _handle?: ZlibHandle | null
  readonly _writeState?: Uint32Array
}

interface ZlibHandle {
  reset(): void
  writeSync(
    flush: number,
    input: Uint8Array,
    inputStart: number,
    inputBytes: number,
    output: Uint8Array,
    outputStart: number,
    outputBytes: number,
  ): void
}

interface OpenStream {
  readonly stream: InflateRaw
  readonly handle: ZlibHandle
  readonly state: Uint32Array
}

/** What remains after a call. */
interface Remains {
  readonly outputBytes: number
  readonly inputBytes: number
}

/**
 * Inflates raw DEFLATE (RFC 1951) on the calling thread into memory of the caller, with one stream that lives as long
 * as the process. `inflateRawSync` makes a stream, its state of 40 KB and a buffer for each call: with all their
 * garbage, decoding a body of ready blocks took one and a half times as long.
 *
 * Its methods return `undefined` on a platform without the internals that it needs.
 */
export class SyncInflater {
  #stream: InflateRaw | undefined

  /** Fills `output` with the first bytes of what a fragment inflates to. Returns whether there are so many. */
  begin(output: Uint8Array, stored: Uint8Array): boolean | undefined {
    const open = this.#open()
    if (open === undefined) return undefined
    return output.length === 0 || this.#write(open, constants.Z_NO_FLUSH, stored, output)?.outputBytes === 0
  }

  /**
   * Fills `output` with what a fragment inflates to, and `tail` but for its last byte with what `suffix` adds. Returns
   * whether the fragment and the suffix are one stream that is whole and inflates to exactly these bytes.
   */
  whole(output: Uint8Array, stored: Uint8Array, suffix: Uint8Array, tail: Uint8Array): boolean | undefined {
    const open = this.#open()
    if (open === undefined) return undefined
    return (
      isUsedUp(this.#write(open, constants.Z_NO_FLUSH, stored, output), 0) &&
      isUsedUp(this.#write(open, constants.Z_FINISH, suffix, tail), 1)
    )
  }

  #open(): OpenStream | undefined {
    const stream = (this.#stream ??= createInflateRaw().on('error', () => undefined))
    const { _handle: handle, _writeState: state } = stream as unknown as ZlibInternals
    if (typeof handle?.writeSync !== 'function' || state === undefined) return undefined
    handle.reset()
    return { stream, handle, state }
  }

  /** `undefined` after an error. */
  #write(
    { stream, handle, state }: OpenStream,
    flush: number,
    input: Uint8Array,
    output: Uint8Array,
  ): Remains | undefined {
    handle.writeSync(flush, input, 0, input.length, output, 0, output.length)
    // An error closes the stream, and a closed one must never be called again.
    if (stream.destroyed) {
      this.#stream = undefined
      return undefined
    }
    const [outputBytes, inputBytes] = state
    return { outputBytes, inputBytes }
  }
}

function isUsedUp(remains: Remains | undefined, outputBytes: number): boolean {
  return remains?.inputBytes === 0 && remains.outputBytes === outputBytes
}

/** The one that all share: a call is over before the next begins. */
export const SYNC_INFLATER: SyncInflater = new SyncInflater()
