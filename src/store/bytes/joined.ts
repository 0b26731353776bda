/** The bytes of several buffers together. */
export function bytesOf(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, { length }) => sum + length, 0)
}

/** One buffer for many; no copy if they are adjacent already. */
export function joined(parts: readonly Uint8Array[]): Uint8Array {
  const first = parts[0]
  let end = first.byteOffset
  for (const part of parts) {
    if (part.byteOffset !== end) return Buffer.concat(parts)
    end += part.byteLength
  }
  return new Uint8Array(first.buffer, first.byteOffset, end - first.byteOffset)
}

/** Moves parts of a buffer, given in the order in which they lie, to its beginning, so that they are adjacent. */
export function movedTogether(whole: Uint8Array, parts: readonly Uint8Array[]): readonly Uint8Array[] {
  let to = 0
  return parts.map((part) => {
    const from = part.byteOffset - whole.byteOffset
    const at = to
    to += part.length
    if (from === at) return part
    whole.copyWithin(at, from, from + part.length)
    return whole.subarray(at, to)
  })
}
