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
