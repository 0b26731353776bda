/**
 * The bytes of `content` in buffers of `bytes` each, the last one shorter and never empty. It is one buffer that is
 * filled again: the consumer must be done with it before it asks for the next. So memory is bounded whatever the chunks
 * are, and tiny chunks cost no call each.
 */
export async function* rechunk(
  content: AsyncIterable<Uint8Array>,
  bytes: number,
): AsyncGenerator<Uint8Array, void, void> {
  const buffer = Buffer.allocUnsafeSlow(bytes)
  let filled = 0
  for await (const chunk of content) {
    for (let from = 0; from < chunk.length;) {
      const taken = Math.min(chunk.length - from, bytes - filled)
      buffer.set(chunk.subarray(from, from + taken), filled)
      from += taken
      filled += taken
      if (filled === bytes) {
        yield buffer
        filled = 0
      }
    }
  }
  if (filled > 0) yield buffer.subarray(0, filled)
}
