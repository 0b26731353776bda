/** The type number of `bytea` in PostgreSQL. */
const BYTEA_OID = 17
const NULL_LENGTH = -1

/**
 * A `bytea[]` in PostgreSQL's binary format, with `undefined` as NULL. The client sends buffers as they are; it would
 * turn an array of buffers into text of twice the size.
 */
export function byteaArray(values: readonly (Uint8Array | undefined)[]): Buffer {
  const bytes = values.reduce((sum, value) => sum + 4 + (value?.length ?? 0), 20)
  const array = Buffer.allocUnsafe(bytes)
  array.writeInt32BE(1, 0) // dimensions
  array.writeInt32BE(1, 4) // may hold NULLs
  array.writeInt32BE(BYTEA_OID, 8)
  array.writeInt32BE(values.length, 12)
  array.writeInt32BE(1, 16) // the first index
  let at = 20
  for (const value of values) {
    at = array.writeInt32BE(value?.length ?? NULL_LENGTH, at)
    if (!value) continue
    array.set(value, at)
    at += value.length
  }
  return array
}

/** One value of many in one `bytea`: its bytes, or a negative number that stands in the place of their count. */
export type Framed = Uint8Array | number

/**
 * The values of a framed `bytea`: each is its count of bytes, in four bytes, and the bytes. Reading many values as one
 * costs the client a fraction of reading as many rows.
 */
export function* framedValues(frame: Buffer): Generator<Framed, void, void> {
  for (let at = 0; at < frame.length;) {
    const length = frame.readInt32BE(at)
    at += 4
    if (length < 0) yield length
    else {
      if (at + length > frame.length) throw new Error('PostgreSQL returned values that are cut off')
      // A copy: the caller may keep one value, and must not keep the whole answer alive with it.
      yield Uint8Array.prototype.slice.call(frame, at, at + length)
      at += length
    }
  }
}
