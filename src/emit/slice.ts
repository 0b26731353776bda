import { StowageError } from '../errors.ts'

/**
 * Exactly `length` bytes (1 or more) of the source, after the first `skip`; then the source is closed. Throws
 * `corrupt_data` when it ends before, so that an answer whose length was promised is never cut short in silence.
 */
export async function* sliceBytes(
  source: AsyncIterable<Uint8Array>,
  skip: number,
  length: number,
): AsyncGenerator<Uint8Array> {
  let toSkip = skip
  let left = length
  for await (const bytes of source) {
    const from = Math.min(toSkip, bytes.length)
    toSkip -= from
    const part = bytes.subarray(from, from + left)
    left -= part.length
    if (part.length > 0) yield part
    if (left === 0) return
  }
  throw new StowageError('corrupt_data', `the stored objects ended ${left} bytes before their declared length`)
}
