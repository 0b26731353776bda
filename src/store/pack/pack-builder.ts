import { crc32 } from 'node:zlib'
import type { Environment } from '../../environment.ts'
import { BLOCK_BYTES, fitsBlock } from '../../blocks/ready-blocks.ts'
import type { BufferPool } from '../../memory/buffer-pool.ts'
import type { ObjectBatch, ReadyBlock } from '../../object/batch.ts'
import { Yielder } from '../../async/yielder.ts'
import { IdSet } from '../../object/id-set.ts'
import { Uint32List } from '../bytes/growable.ts'
import type { BaseLine } from './delta-block.ts'
import { DirectoryBuilder } from './directory-builder.ts'
import { crc32OfLine } from './line-checksum.ts'
import { CODEC_DELTA, CODEC_RAW_DEFLATE, type ByteTable, type PackTables, type Rows } from './pack-format.ts'

/** A received block of fewer raw bytes is compressed anew, with its neighbours: small blocks cost every download. */
const ADOPTED_BYTES_MIN: number = BLOCK_BYTES / 2
const UNDEFINED_ORDINAL = 0xffffffff
/**
 * Names that are taken between two looks at the clock. The first touch of fresh memory costs far more than the work on
 * it.
 */
const NAMES_AT_ONCE = 512
/** An object that mentions more is taken in turns. */
const NAMES_IN_ONE_TURN_MAX = 4_096

/** A block that no object is added to any more: raw, compressed already, or a delta on the line of another object. */
export type ClosedBlock =
  | { readonly raw: Uint8Array }
  | { readonly stored: Uint8Array }
  | { readonly delta: Uint8Array; readonly baseOrdinal: number }

/** The place of a block in a batch. */
export interface BlockPlace {
  /** Its first object. */
  readonly first: number
  /** The byte at which the line of that starts. */
  readonly start: number
  /** Of the text of each of its objects. */
  readonly textCrc32: Uint32Array
}

/**
 * Gathers objects into raw blocks and their facts into tables. Every id, of an object or mentioned by one, is interned
 * once (a symbol); at the end symbols that became objects turn into ordinals, all others into external ids.
 */
export class PackBuilder {
  readonly #environment: Environment
  readonly #bufferPool: BufferPool
  #symbols: IdSet
  #ordinalOfSymbol = new Uint32List()
  #symbolOfOrdinal = new Uint32List()
  readonly #lineBytes = new Uint32List()
  readonly #textCrc32 = new Uint32List()
  readonly #references = { ends: new Uint32List(), targets: new Uint32List() }
  readonly #claims = { ends: new Uint32List(), targets: new Uint32List() }
  readonly #directory = new DirectoryBuilder()
  #blockBytes = BLOCK_BYTES
  /** Taken from the pool for the first line of a block. */
  #open: Uint8Array = new Uint8Array(0)
  #openBytes = 0
  #openIdBytes = 0
  #closed: ClosedBlock[] = []
  /** The symbols of the block that is being adopted. */
  readonly #claimed: number[] = []

  /** Raw blocks are in memory of the pool: who needs one no more may give it back. */
  constructor(environment: Environment, bufferPool: BufferPool) {
    this.#environment = environment
    this.#bufferPool = bufferPool
    this.#symbols = new IdSet(undefined, undefined, environment.hashKey)
  }

  get objects(): number {
    return this.#lineBytes.length
  }

  /** Bytes of memory that the tables hold so far. */
  get memoryBytes(): number {
    const lists = [
      this.#ordinalOfSymbol,
      this.#symbolOfOrdinal,
      this.#lineBytes,
      this.#textCrc32,
      this.#references.targets,
      this.#claims.targets,
      this.#directory,
    ]
    return this.#symbols.memoryBytes + lists.reduce((sum, list) => sum + list.memoryBytes, 0)
  }

  /** Bytes that `tables` adds: ids in the order of their objects, and targets in place of symbols. */
  get finishedBytes(): number {
    const targets = this.#references.targets.length + this.#claims.targets.length
    return this.#symbols.idBytes + 4 * (2 * this.#symbols.size + targets)
  }

  /** The ordinal of an id that was added already, or -1. */
  find(source: Uint8Array, start: number, end: number): number {
    const symbol = this.#symbols.find(source, start, end)
    const ordinal = symbol === -1 ? UNDEFINED_ORDINAL : this.#ordinalOfSymbol.at(symbol)
    return ordinal === UNDEFINED_ORDINAL ? -1 : ordinal
  }

  isSameText(ordinal: number, textBytes: number, textCrc32: number): boolean {
    const idBytes = this.#symbols.lengthAt(this.#symbolOfOrdinal.at(ordinal))
    return this.#lineBytes.at(ordinal) === idBytes + textBytes + 2 && this.#textCrc32.at(ordinal) === textCrc32
  }

  /**
   * Adds object `index` of the batch, whose line starts at `start`. Its id must not have been added before. Returns a
   * promise for an object that mentions so many others that the event loop must turn in between.
   */
  add(batch: ObjectBatch, index: number, start: number, textCrc32: number): Promise<void> | undefined {
    const idBytes = batch.idBytes[index]
    const lineBytes = batch.lineBytes[index]
    if (!fitsBlock(this.#openBytes, lineBytes, this.#blockBytes)) this.closeBlock()
    this.#beginObject(batch, index, start, textCrc32)
    this.#append(batch.lines, start, lineBytes, idBytes)
    if (this.#openBytes >= this.#blockBytes) {
      // A block of its own: the checksum of a long text is not computed twice.
      const isAlone = this.#openBytes === lineBytes
      this.closeBlock(isAlone ? crc32OfLine(batch.lines, { start, idBytes, lineBytes, textCrc32 }) : undefined)
    }
    return this.#mentionAll(batch, index)
  }

  /**
   * Takes a block as it was received, with objects `first` and following of the batch, whose lines start at `start`.
   * Returns false, and changes nothing, if the block is too small, or if one of its ids was added before.
   */
  async adopt(batch: ObjectBatch, block: ReadyBlock, at: BlockPlace): Promise<boolean> {
    const firstOrdinal = this.objects
    if (block.rawBytes < ADOPTED_BYTES_MIN || !this.#claimOrdinals(batch, block, at)) return false
    this.closeBlock()
    let idBytes = 0
    for (let i = 0; i < block.count; i++) {
      const index = at.first + i
      idBytes += batch.idBytes[index]
      this.#beginRow(this.#claimed[i], batch.lineBytes[index], at.textCrc32[i])
      const more = this.#mentionAll(batch, index)
      if (more !== undefined) await more
    }
    this.#endBlock(block, { objectEnd: firstOrdinal + block.count, idBytes })
    return true
  }

  /** As `add`, for an object whose line is stored as a delta on that of an object of this pack. */
  addDelta(
    batch: ObjectBatch,
    index: number,
    start: number,
    {
      textCrc32,
      delta,
      baseOrdinal,
    }: { readonly textCrc32: number; readonly delta: Uint8Array; readonly baseOrdinal: number },
  ): Promise<void> | undefined {
    this.closeBlock()
    const idBytes = batch.idBytes[index]
    const lineBytes = batch.lineBytes[index]
    this.#beginObject(batch, index, start, textCrc32)
    const rawCrc32 = crc32OfLine(batch.lines, { start, idBytes, lineBytes, textCrc32 })
    this.#endBlock({ delta, baseOrdinal, rawBytes: lineBytes, rawCrc32 }, { objectEnd: this.objects, idBytes })
    return this.#mentionAll(batch, index)
  }

  /** Where the line of an object lies, once its block is placed. */
  lineOf(ordinal: number): BaseLine {
    return { ...this.#directory.placeOf(ordinal, this.#lineBytes), lineBytes: this.#lineBytes.at(ordinal) }
  }

  /** Begins a block for the next object; this one and the following are closed at so many raw bytes. */
  beginBlocksOf(blockBytes: number): void {
    this.closeBlock()
    this.#blockBytes = blockBytes
  }

  /** Ends the open block, if it holds anything. */
  closeBlock(rawCrc32?: number): void {
    if (this.#openBytes === 0) return
    const raw = this.#open.subarray(0, this.#openBytes)
    this.#bufferPool.giveBack(this.#open.subarray(this.#openBytes))
    const block = { raw, rawBytes: raw.length, rawCrc32: rawCrc32 ?? crc32(raw) }
    this.#endBlock(block, { objectEnd: this.objects, idBytes: this.#openIdBytes })
    this.#openBytes = 0
    this.#openIdBytes = 0
  }

  /**
   * Blocks that were closed since the last call, in order; the caller compresses those that are raw and calls `placed`,
   * in the same order.
   */
  takeClosed(): ClosedBlock[] {
    const closed = this.#closed
    this.#closed = []
    return closed
  }

  /** Notes the place of the next block in the pack. */
  placed(stored: Uint8Array, offset: number): void {
    this.#directory.placed(stored, offset)
  }

  /** The tables of the pack, once every block is placed. Nothing can be added after that: what they do not need goes. */
  async tables(): Promise<PackTables> {
    const yielder = new Yielder(this.#environment)
    const externals = new Uint32List()
    const targetOfSymbol = new Uint32Array(this.#symbols.size)
    for (let symbol = 0; symbol < targetOfSymbol.length; symbol++) {
      const ordinal = this.#ordinalOfSymbol.at(symbol)
      targetOfSymbol[symbol] = ordinal === UNDEFINED_ORDINAL ? this.objects + externals.length : ordinal
      if (ordinal === UNDEFINED_ORDINAL) externals.push(symbol)
      if (symbol % NAMES_AT_ONCE === 0) await yielder.due()
    }
    const tables = {
      objects: this.objects,
      blocks: this.#directory.blocks,
      directory: this.#directory.finish(),
      lineBytes: this.#lineBytes.view(),
      textCrc32: this.#textCrc32.view(),
      ids: await this.#byteTable(this.#symbolOfOrdinal.view(), yielder),
      references: await remapped(this.#references, targetOfSymbol, yielder),
      claims: await remapped(this.#claims, targetOfSymbol, yielder),
      externals: await this.#byteTable(externals.view(), yielder),
    }
    this.#symbols = new IdSet(0, undefined, this.#environment.hashKey)
    this.#ordinalOfSymbol = new Uint32List()
    this.#symbolOfOrdinal = new Uint32List()
    for (const rows of [this.#references, this.#claims]) rows.targets = new Uint32List()
    return tables
  }

  #intern(source: Uint8Array, start: number, end: number): number {
    const symbol = this.#symbols.add(source, start, end)
    if (symbol === this.#ordinalOfSymbol.length) this.#ordinalOfSymbol.push(UNDEFINED_ORDINAL)
    return symbol
  }

  /** Gives the next ordinals to the ids of a block; false, and nothing is changed, if one of them has an ordinal. */
  #claimOrdinals(batch: ObjectBatch, { count }: ReadyBlock, { first, start }: BlockPlace): boolean {
    this.#claimed.length = 0
    for (let i = 0, at = start; i < count; at += batch.lineBytes[first + i++]) {
      const symbol = this.#intern(batch.lines, at, at + batch.idBytes[first + i])
      if (this.#ordinalOfSymbol.at(symbol) !== UNDEFINED_ORDINAL) {
        for (const claimed of this.#claimed) this.#ordinalOfSymbol.set(claimed, UNDEFINED_ORDINAL)
        return false
      }
      this.#ordinalOfSymbol.set(symbol, this.objects + i)
      this.#claimed.push(symbol)
    }
    return true
  }

  #beginObject(batch: ObjectBatch, index: number, start: number, textCrc32: number): void {
    const symbol = this.#intern(batch.lines, start, start + batch.idBytes[index])
    this.#ordinalOfSymbol.set(symbol, this.objects)
    this.#beginRow(symbol, batch.lineBytes[index], textCrc32)
  }

  #beginRow(symbol: number, lineBytes: number, textCrc32: number): void {
    this.#symbolOfOrdinal.push(symbol)
    this.#lineBytes.push(lineBytes)
    this.#textCrc32.push(textCrc32)
  }

  #endBlock(
    block: Pick<ReadyBlock, 'rawBytes' | 'rawCrc32'> & ClosedBlock,
    { objectEnd, idBytes }: { readonly objectEnd: number; readonly idBytes: number },
  ): void {
    this.#closed.push(block)
    const codec = 'delta' in block ? CODEC_DELTA : CODEC_RAW_DEFLATE
    this.#directory.end({ codec, rawBytes: block.rawBytes, rawCrc32: block.rawCrc32, objectEnd, idBytes })
  }

  #mentionAll(batch: ObjectBatch, index: number): Promise<void> | undefined {
    const first = index === 0 ? 0 : batch.claimEnds[index - 1]
    if (batch.claimEnds[index] - first > NAMES_IN_ONE_TURN_MAX) return this.#mentionInTurns(batch, index, first)
    this.#mention(this.#references, batch, first, batch.referenceEnds[index])
    this.#mention(this.#claims, batch, batch.referenceEnds[index], batch.claimEnds[index])
    this.#endRows()
    return undefined
  }

  async #mentionInTurns(batch: ObjectBatch, index: number, first: number): Promise<void> {
    const yielder = new Yielder(this.#environment)
    const names = batch.claimEnds[index] - first
    const nameBytes = batch.nameEnds[batch.claimEnds[index] - 1] - (first === 0 ? 0 : batch.nameEnds[first - 1])
    this.#symbols.reserve(this.#symbols.size + names, this.#symbols.idBytes + nameBytes)
    this.#ordinalOfSymbol.reserve(this.#symbols.size + names)
    await yielder.turn()
    for (const [list, start, end] of [
      [this.#references, first, batch.referenceEnds[index]],
      [this.#claims, batch.referenceEnds[index], batch.claimEnds[index]],
    ] as const) {
      for (let name = start; name < end; name += NAMES_AT_ONCE) {
        this.#mention(list, batch, name, Math.min(end, name + NAMES_AT_ONCE))
        await yielder.due()
      }
    }
    this.#endRows()
  }

  #mention({ targets }: { readonly targets: Uint32List }, batch: ObjectBatch, start: number, end: number): void {
    for (let name = start; name < end; name++)
      targets.push(this.#intern(batch.names, name === 0 ? 0 : batch.nameEnds[name - 1], batch.nameEnds[name]))
  }

  #endRows(): void {
    this.#references.ends.push(this.#references.targets.length)
    this.#claims.ends.push(this.#claims.targets.length)
  }

  #append(lines: Uint8Array, start: number, lineBytes: number, idBytes: number): void {
    if (this.#openBytes === 0) this.#open = this.#bufferPool.takeAny(Math.max(this.#blockBytes, lineBytes))
    this.#open.set(lines.subarray(start, start + lineBytes), this.#openBytes)
    this.#openBytes += lineBytes
    this.#openIdBytes += idBytes
  }

  async #byteTable(symbols: Uint32Array, yielder: Yielder): Promise<ByteTable> {
    const from = this.#symbols.table()
    const ends = new Uint32Array(symbols.length)
    let length = 0
    for (let i = 0; i < symbols.length; i++) {
      ends[i] = length += this.#symbols.lengthAt(symbols[i])
      if (i % NAMES_AT_ONCE === 0) await yielder.due()
    }
    const bytes = new Uint8Array(length)
    for (let i = 0, to = 0; i < symbols.length; i++) {
      const start = from.ends[symbols[i]] - this.#symbols.lengthAt(symbols[i])
      for (let at = start; at < from.ends[symbols[i]]; at++) bytes[to++] = from.bytes[at]
      if (i % NAMES_AT_ONCE === 0) await yielder.due()
    }
    return { ends, bytes }
  }
}

async function remapped(
  rows: { readonly ends: Uint32List; readonly targets: Uint32List },
  targetOfSymbol: Uint32Array,
  yielder: Yielder,
): Promise<Rows> {
  const symbols = rows.targets.view()
  const targets = new Uint32Array(symbols.length)
  for (let start = 0; start < targets.length; start += NAMES_AT_ONCE) {
    const end = Math.min(targets.length, start + NAMES_AT_ONCE)
    for (let i = start; i < end; i++) targets[i] = targetOfSymbol[symbols[i]]
    await yielder.due()
  }
  return { ends: rows.ends.view(), targets }
}
