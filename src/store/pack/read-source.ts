import { BLOB_READ_BYTES_MAX, type BlobStore, type ReadOptions } from '../../storage/backend.ts'
import { corrupt } from '../bytes/byte-codec.ts'
import type { ByteSource } from './segment.ts'

/** Bytes of a source. Reads beyond the limit of the seam are joined from several. */
export async function readSource(
  blobs: BlobStore,
  source: ByteSource,
  start: number,
  end: number,
  { signal, into }: ReadOptions = {},
): Promise<Uint8Array> {
  signal?.throwIfAborted()
  if ('bytes' in source) {
    if (end > source.bytes.length) throw corrupt('a pack inside its record is cut short')
    return source.bytes.subarray(start, end)
  }
  if (end - start <= BLOB_READ_BYTES_MAX) return blobs.read(source.blob, start, end, { signal, into })
  const whole = new Uint8Array(end - start)
  for (let at = start; at < end; at += BLOB_READ_BYTES_MAX) {
    whole.set(await blobs.read(source.blob, at, Math.min(end, at + BLOB_READ_BYTES_MAX), { signal }), at - start)
  }
  return whole
}
