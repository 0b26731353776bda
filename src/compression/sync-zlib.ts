import type { Gunzip, InflateRaw } from 'node:zlib'

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

/** What remains after a call. */
export interface Remains {
  readonly outputBytes: number
  readonly inputBytes: number
}

/** Inflates on the calling thread into memory of the caller, by way of a stream that nobody else may use. */
export class SyncZlib {
  readonly stream: Gunzip | InflateRaw
  readonly #handle: ZlibHandle
  readonly #state: Uint32Array

  private constructor(stream: Gunzip | InflateRaw, handle: ZlibHandle, state: Uint32Array) {
    this.stream = stream
    this.#handle = handle
    this.#state = state
  }

  /** `undefined` on a platform without the internals that it needs, and for a closed stream. */
  static over(stream: Gunzip | InflateRaw): SyncZlib | undefined {
    const { _handle: handle, _writeState: state } = stream as unknown as ZlibInternals
    if (typeof handle?.writeSync !== 'function' || state === undefined) return undefined
    return new SyncZlib(stream, handle, state)
  }

  /** The next input begins a new content. */
  reset(): void {
    this.#handle.reset()
  }

  /** `undefined` after an error, which the stream emits later: it is closed, and must never be called again. */
  write(flush: number, input: Uint8Array, output: Uint8Array): Remains | undefined {
    this.#handle.writeSync(flush, input, 0, input.length, output, 0, output.length)
    if (this.stream.destroyed) return undefined
    const [outputBytes, inputBytes] = this.#state
    return { outputBytes, inputBytes }
  }
}
