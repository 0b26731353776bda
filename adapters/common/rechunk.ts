/**
 * The bytes of `content` in `buffer`, again and again: full each time but the last, and never empty. The consumer must
 * be done with it before it asks for the next. So memory is bounded whatever the chunks are, and tiny chunks cost no
 * call each.
 */
export async function* rechunk(
  content: AsyncIterable<Uint8Array>,
  buffer: Uint8Array,
): AsyncGenerator<Uint8Array, void, void> {
  let filled = 0
  for await (const chunk of content) {
    for (let from = 0; from < chunk.length;) {
      const taken = Math.min(chunk.length - from, buffer.length - filled)
      buffer.set(chunk.subarray(from, from + taken), filled)
      from += taken
      filled += taken
      if (filled === buffer.length) {
        yield buffer
        filled = 0
      }
    }
  }
  if (filled > 0) yield buffer.subarray(0, filled)
}
