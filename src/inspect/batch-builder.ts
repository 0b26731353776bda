import type { ObjectBatch } from '../object/batch.ts'
import { ByteList } from '../object/byte-list.ts'
import { IdColumn } from './id-column.ts'

const TAB = 0x09
const LF = 0x0a
const COMMA = 0x2c

const OBJECTS_AT_FIRST = 64
const LINE_BYTES_AT_FIRST = 16_384

/** Gathers objects into a batch. What it hands out is never written again. */
export class BatchBuilder {
  #lines: ByteList
  #names = new IdColumn(OBJECTS_AT_FIRST)
  #lineBytes = new Uint32Array(OBJECTS_AT_FIRST)
  #idBytes = new Uint16Array(OBJECTS_AT_FIRST)
  #referenceEnds = new Uint32Array(OBJECTS_AT_FIRST)
  #claimEnds = new Uint32Array(OBJECTS_AT_FIRST)
  #count = 0

  /** With `holdsLines: false` all objects are added by `addHeld`. */
  constructor({ holdsLines = true }: { readonly holdsLines?: boolean } = {}) {
    this.#lines = new ByteList(holdsLines ? LINE_BYTES_AT_FIRST : 0)
  }

  get count(): number {
    return this.#count
  }

  /** Bytes that the batch holds so far. */
  get bytes(): number {
    return this.#lines.length + this.#names.bytes.length
  }

  /** The references of the next object, before it is added. */
  get references(): IdColumn {
    return this.#names
  }

  /** Adds an object whose text holds its id. */
  add(id: Uint8Array, text: Uint8Array, claims: IdColumn): void {
    this.#lines.reserve(id.length + text.length + 2)
    const start = this.#lines.length
    this.#lines.append(id)
    this.#lines.push(TAB)
    this.#lines.append(text)
    this.#endLine(start, id.length, claims)
  }

  /** Adds an object whose line lies behind those before it in the buffer that `takeOf` receives. */
  addHeld(lineBytes: number, idBytes: number, claims: IdColumn): void {
    this.#endColumns(lineBytes, idBytes, claims)
  }

  /** Adds an object whose text has no id yet: it becomes the first member. */
  addWithId(id: Uint8Array, text: Uint8Array, isEmpty: boolean, claims: IdColumn): void {
    const member = Buffer.from(`{"id":"${Buffer.from(id).toString('latin1')}"`, 'latin1')
    this.#lines.reserve(id.length + member.length + text.length + 2)
    const start = this.#lines.length
    this.#lines.append(id)
    this.#lines.push(TAB)
    this.#lines.append(member)
    if (!isEmpty) this.#lines.push(COMMA)
    this.#lines.append(text, 1)
    this.#endLine(start, id.length, claims)
  }

  /** The objects so far; the builder begins again with new buffers. */
  take(): ObjectBatch {
    const batch = this.#take(this.#lines.view())
    this.#lines = new ByteList(Math.min(batch.lines.length + LINE_BYTES_AT_FIRST, 524_288))
    return batch
  }

  /** The same for objects that were added by `addHeld`: `lines` are theirs. */
  takeOf(lines: Uint8Array): ObjectBatch {
    return this.#take(lines)
  }

  #take(lines: Uint8Array): ObjectBatch {
    const count = this.#count
    const batch: ObjectBatch = {
      count,
      lines,
      lineBytes: this.#lineBytes.subarray(0, count),
      idBytes: this.#idBytes.subarray(0, count),
      names: this.#names.bytes,
      nameEnds: this.#names.ends,
      referenceEnds: this.#referenceEnds.subarray(0, count),
      claimEnds: this.#claimEnds.subarray(0, count),
    }
    this.#startAnew(batch)
    return batch
  }

  #endLine(start: number, idBytes: number, claims: IdColumn): void {
    this.#lines.push(LF)
    this.#endColumns(this.#lines.length - start, idBytes, claims)
  }

  #endColumns(lineBytes: number, idBytes: number, claims: IdColumn): void {
    if (this.#count === this.#lineBytes.length) this.#growColumns(this.#count * 2)
    const index = this.#count++
    this.#lineBytes[index] = lineBytes
    this.#idBytes[index] = idBytes
    this.#referenceEnds[index] = this.#names.count
    this.#names.addAll(claims)
    this.#claimEnds[index] = this.#names.count
  }

  /** The next batch will be about as large as the last one, an unusually large one aside. */
  #startAnew(last: ObjectBatch): void {
    const capacity = Math.max(OBJECTS_AT_FIRST, Math.min(last.count, 4_096))
    this.#names = new IdColumn(Math.max(OBJECTS_AT_FIRST, Math.min(last.nameEnds.length, 16_384)))
    this.#lineBytes = new Uint32Array(capacity)
    this.#idBytes = new Uint16Array(capacity)
    this.#referenceEnds = new Uint32Array(capacity)
    this.#claimEnds = new Uint32Array(capacity)
    this.#count = 0
  }

  #growColumns(capacity: number): void {
    this.#lineBytes = copyInto(new Uint32Array(capacity), this.#lineBytes)
    this.#idBytes = copyInto(new Uint16Array(capacity), this.#idBytes)
    this.#referenceEnds = copyInto(new Uint32Array(capacity), this.#referenceEnds)
    this.#claimEnds = copyInto(new Uint32Array(capacity), this.#claimEnds)
  }
}

function copyInto<T extends Uint16Array | Uint32Array>(larger: T, values: T): T {
  larger.set(values)
  return larger
}
