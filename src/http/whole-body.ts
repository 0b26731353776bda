import { collectBytes } from '../decode/collect-bytes.ts'
import { tooLarge } from '../limits.ts'
import type { Exchange } from './exchange.ts'

/**
 * All of a body that is read whole, leased as it arrives. Throws `request_too_large`, naming `what`, and the errors of
 * the lease.
 */
export async function wholeBody(
  { body, memory }: Pick<Exchange<unknown>, 'body' | 'memory'>,
  { bytesMax, what }: { readonly bytesMax: number; readonly what: string },
): Promise<Buffer> {
  const { length = 0 } = body
  if (length > bytesMax) throw tooLarge('request_too_large', `${what} (${length} bytes)`, bytesMax)
  const chunks = bounded(body.values(), () => tooLarge('request_too_large', what, bytesMax), bytesMax)
  const bytes = await collectBytes(chunks, { expectedBytes: length, bytesMax, memory, code: 'request_too_large' })
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

async function* bounded(
  chunks: AsyncIterable<Uint8Array>,
  refusal: () => Error,
  bytesMax: number,
): AsyncGenerator<Uint8Array> {
  let bytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.length
    if (bytes > bytesMax) throw refusal()
    yield chunk
  }
}
