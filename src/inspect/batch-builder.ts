import type { BufferPool } from '../memory/buffer-pool.ts'
import type { ObjectBatch } from '../object/batch.ts'
import { ByteList } from '../object/byte-list.ts'
import { IdColumn } from './id-column.ts'

const TAB = 0x09
const LF = 0x0a
const COMMA = 0x2c

const OBJECTS_AT_FIRST = 64
const LINE_BYTES_AT_FIRST = 16_384
const LINE_BYTES_AT_FIRST_MAX = 524_288

/** Gathers objects into a batch. */
export class BatchBuilder {
  readonly #bufferPool: BufferPool | undefined
  /** Made for the first line of a batch. */
  #lines: ByteList | undefined
  #lineBytesAtFirst = LINE_BYTES_AT_FIRST
  #names: IdColumn
  #lineBytes = new Uint32Array(OBJECTS_AT_FIRST)
  #idBytes = new Uint16Array(OBJECTS_AT_FIRST)
  #referenceEnds = new Uint32Array(OBJECTS_AT_FIRST)
  #claimEnds = new Uint32Array(OBJECTS_AT_FIRST)
  #count = 0

  /**
   * Lines and names are in memory of the pool, if there is one: who needs those of a batch no more may give them back.
   */
  constructor(bufferPool?: BufferPool) {
    this.#bufferPool = bufferPool
    this.#names = new IdColumn(OBJECTS_AT_FIRST, bufferPool)
  }

  get count(): number {
    return this.#count
  }

  /** Bytes that the batch holds so far. */
  get bytes(): number {
    return (this.#lines?.length ?? 0) + this.#names.bytes.length
  }

  /** The references of the next object, before it is added. */
  get references(): IdColumn {
    return this.#names
  }

  /** Adds an object whose text holds its id. */
  add(id: Uint8Array, text: Uint8Array, claims: IdColumn): void {
    const lines = this.#linesWithRoomFor(id.length + text.length + 2)
    const start = lines.length
    lines.append(id)
    lines.push(TAB)
    lines.append(text)
    lines.push(LF)
    this.#endColumns(lines.length - start, id.length, claims)
  }

  /** Adds an object whose line lies behind those before it in the buffer that `takeOf` receives. */
  addHeld(lineBytes: number, idBytes: number, claims: IdColumn): void {
    this.#endColumns(lineBytes, idBytes, claims)
  }

  /** Adds an object whose text has no id yet: it becomes the first member. */
  addWithId(id: Uint8Array, text: Uint8Array, isEmpty: boolean, claims: IdColumn): void {
    const member = Buffer.from(`{"id":"${Buffer.from(id).toString('latin1')}"`, 'latin1')
    const lines = this.#linesWithRoomFor(id.length + member.length + text.length + 2)
    const start = lines.length
    lines.append(id)
    lines.push(TAB)
    lines.append(member)
    if (!isEmpty) lines.push(COMMA)
    lines.append(text, 1)
    lines.push(LF)
    this.#endColumns(lines.length - start, id.length, claims)
  }

  /** The objects so far, of which there must be some; the builder begins again with new buffers. */
  take(): ObjectBatch {
    const lines = (this.#lines as ByteList).detach()
    this.#lines = undefined
    this.#lineBytesAtFirst = Math.min(lines.length + LINE_BYTES_AT_FIRST, LINE_BYTES_AT_FIRST_MAX)
    return this.#take(lines)
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
      nameEnds: this.#names.ends,
      names: this.#names.detach(),
      referenceEnds: this.#referenceEnds.subarray(0, count),
      claimEnds: this.#claimEnds.subarray(0, count),
    }
    this.#startAnew(batch)
    return batch
  }

  #linesWithRoomFor(bytes: number): ByteList {
    this.#lines ??= new ByteList(Math.max(bytes, this.#lineBytesAtFirst), this.#bufferPool)
    this.#lines.reserve(bytes)
    return this.#lines
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
    const names = Math.max(OBJECTS_AT_FIRST, Math.min(last.nameEnds.length, 16_384))
    this.#names = new IdColumn(names, this.#bufferPool)
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
