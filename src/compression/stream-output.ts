import type { DeflateRaw, InflateRaw } from 'node:zlib'

/**
 * What lies behind the streams of `node:zlib`, in every version of Node that there is, and not in its documentation:
 * where output goes, from which byte on, and how much of it there may be.
 */
interface OutputInternals {
  readonly _outBuffer?: unknown
  readonly _outOffset?: unknown
  readonly _chunkSize?: unknown
}

/** Where a stream writes its output. */
export interface StreamOutput {
  readonly _outBuffer: Buffer
  readonly _outOffset: number
  readonly _chunkSize: number
}

/** Where the output of a stream goes now; `undefined` on a platform where these names mean nothing. */
export function outputOf(stream: DeflateRaw | InflateRaw): StreamOutput | undefined {
  const { _outBuffer, _outOffset, _chunkSize } = stream as unknown as OutputInternals
  if (!Buffer.isBuffer(_outBuffer) || typeof _outOffset !== 'number' || _chunkSize !== _outBuffer.length)
    return undefined
  return { _outBuffer, _outOffset, _chunkSize }
}

/** Output goes to this memory, from its first byte on. */
export function outputInto(memory: Uint8Array): StreamOutput {
  const buffer = Buffer.from(memory.buffer, memory.byteOffset, memory.length)
  return { _outBuffer: buffer, _outOffset: 0, _chunkSize: buffer.length }
}

/** Call it between two writes only: a write ends where it began. */
export function directOutput(stream: DeflateRaw | InflateRaw, output: StreamOutput): void {
  Object.assign(stream, output)
}
