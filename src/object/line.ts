import type { ObjectBatch } from './batch.ts'

const TAB = 0x09
const LF = 0x0a

/** One object as a host's own store sees it. */
export interface ObjectRecord {
  /** 1 to 512 bytes of UTF-8, free of control characters; the same as the member `id` of the text. */
  readonly id: string
  /**
   * The object's JSON text (RFC 8259) as UTF-8, without line ends and tabs. To be kept and given back byte for byte.
   * May be a view of a larger buffer.
   */
  readonly json: Uint8Array
  /** Ids in members `referencedId` at any depth: the object's children, each once. They need not be held. */
  readonly references: readonly string[]
  /**
   * Further ids that the object's `__closure` names as descendants, each once. They are a claim of the client, not a
   * fact.
   */
  readonly claims: readonly string[]
}

/**
 * The batch's objects one by one, for stores that are not built on a `StorageBackend`. They may be kept: `json` shares
 * memory with the batch only if that is not used again.
 */
export function toObjectRecords(batch: ObjectBatch): ObjectRecord[] {
  const lines = batch.blocks === undefined ? asBuffer(batch.lines) : Buffer.from(batch.lines)
  const names = asBuffer(batch.names)
  const records: ObjectRecord[] = []
  let start = 0
  for (let index = 0; index < batch.count; index++) {
    const idEnd = start + batch.idBytes[index]
    const end = start + batch.lineBytes[index]
    const firstName = index === 0 ? 0 : batch.claimEnds[index - 1]
    const references = namesBetween(names, batch.nameEnds, firstName, batch.referenceEnds[index])
    const claims = namesBetween(names, batch.nameEnds, batch.referenceEnds[index], batch.claimEnds[index])
    for (const reference of references) claims.delete(reference)
    records.push({
      id: lines.toString('utf8', start, idEnd),
      json: lines.subarray(idEnd + 1, end - 1),
      references: [...references],
      claims: [...claims],
    })
    start = end
  }
  return records
}

/** The two parts of a line `<id> TAB <json> LF`, as views. */
export interface LineParts {
  readonly id: Buffer
  readonly json: Buffer
}

/** Whole lines, one after the other. */
export function* linePartsOf(lines: Uint8Array): Generator<LineParts, void, undefined> {
  const bytes = asBuffer(lines)
  for (let start = 0; start < bytes.length;) {
    const tab = bytes.indexOf(TAB, start)
    const end = bytes.indexOf(LF, tab)
    yield { id: bytes.subarray(start, tab), json: bytes.subarray(tab + 1, end) }
    start = end + 1
  }
}

function namesBetween(names: Buffer, nameEnds: Uint32Array, first: number, after: number): Set<string> {
  const strings = new Set<string>()
  for (let name = first; name < after; name++)
    strings.add(names.toString('utf8', name === 0 ? 0 : nameEnds[name - 1], nameEnds[name]))
  return strings
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
