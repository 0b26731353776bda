import { tooLarge } from '../limits.ts'

const LF = 0x0a

/**
 * Lines of a text, without their ends, in batches. Throws `object_too_large` for a line of more than `bytesMax` bytes.
 */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>, bytesMax: number): AsyncGenerator<readonly Buffer[]> {
  let rest: Uint8Array[] = []
  let restBytes = 0
  let line = 1
  const check = (bytes: number): void => {
    if (bytes > bytesMax) throw tooLarge('object_too_large', `line ${line}`, bytesMax)
  }
  for await (const chunk of chunks) {
    const lines: Buffer[] = []
    let start = 0
    for (let end = chunk.indexOf(LF); end >= 0; end = chunk.indexOf(LF, start)) {
      check(restBytes + end - start)
      lines.push(Buffer.concat([...rest, chunk.subarray(start, end)]))
      rest = []
      restBytes = 0
      start = end + 1
      line += 1
    }
    check(restBytes + chunk.length - start)
    // Copied: the chunk may be overwritten.
    if (start < chunk.length) rest.push(Uint8Array.from(chunk.subarray(start)))
    restBytes += chunk.length - start
    if (lines.length > 0) yield lines
  }
  if (restBytes > 0) yield [Buffer.concat(rest)]
}
