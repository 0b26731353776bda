import { Readable, Writable } from 'node:stream'
import { ByteLengthQueuingStrategy, type ReadableStream, type WritableStream } from 'node:stream/web'

/**
 * A web stream of bytes, as the body of a `Response`. It reads no further ahead than the Node stream does; cancelling
 * it destroys the Node stream. Throws `TypeError` for a stream in object mode.
 */
export function toWebReadable(stream: Readable): ReadableStream<Uint8Array> {
  if (stream.readableObjectMode)
    throw new TypeError('a stream in object mode has no bytes; create it without objectMode')
  // Node's own default counts chunks in some versions, and then keeps thousands of them.
  const strategy = new ByteLengthQueuingStrategy({ highWaterMark: stream.readableHighWaterMark })
  return Readable.toWeb(stream, { strategy }) as ReadableStream<Uint8Array>
}

/**
 * A web stream that writes to a Node stream, such as one for uploads. Its `close` resolves when the Node stream has
 * finished; `abort` destroys that.
 */
export function toWebWritable(stream: Writable): WritableStream {
  return Writable.toWeb(stream)
}
