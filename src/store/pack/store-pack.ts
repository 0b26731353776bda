import { StowageError } from '../../errors.ts'
import type { BlobStore } from '../../storage/backend.ts'

/** A pack up to this size lies inside its record: no blob, one sync less. */
export const INLINE_PACK_BYTES_MAX = 49_152
/** Pack offsets are 32 bits wide. */
const PACK_BYTES_MAX = 2 ** 32 - 1

/** Returns the pack if it is small enough to lie inside its record; a larger one is streamed into a blob. */
export async function storePack(
  blobs: BlobStore,
  blobName: string,
  content: AsyncGenerator<Uint8Array>,
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  const first: Uint8Array[] = []
  let firstBytes = 0
  try {
    for (let next = await content.next(); !next.done; next = await content.next()) {
      // What was yielded may be written over when the next is asked for.
      first.push(Uint8Array.from(next.value))
      firstBytes += next.value.length
      if (firstBytes > INLINE_PACK_BYTES_MAX) {
        await blobs.put(blobName, within(first, content), { signal })
        return undefined
      }
    }
    return Buffer.concat(first)
  } finally {
    await content.return(undefined)
  }
}

async function* within(first: readonly Uint8Array[], rest: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let bytes = 0
  for (const chunk of first) {
    bytes += chunk.length
    yield chunk
  }
  for await (const chunk of rest) {
    bytes += chunk.length
    if (bytes > PACK_BYTES_MAX)
      throw new StowageError(
        'request_too_large',
        `one upload may have at most ${PACK_BYTES_MAX} compressed bytes; split it`,
      )
    yield chunk
  }
}
