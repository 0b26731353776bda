import { type DeflatePool, deflatedBytesMax } from '../../compression/deflate-pool.ts'
import type { Environment } from '../../environment.ts'
import type { BufferPool } from '../../memory/buffer-pool.ts'
import type { MemoryLease, MemoryPart } from '../../memory/memory-lease.ts'
import type { ObjectBatch } from '../../object/batch.ts'
import { PACKED_ID_BYTES } from '../../object/hex-id.ts'
import { abortable } from '../../async/abort.ts'
import type { QuotaReservation } from './quotas.ts'
import { encodeDeltaBlock } from '../pack/delta-block.ts'
import { type ClosedBlock, PackBuilder } from '../pack/pack-builder.ts'
import { encodeHeader, type PackHeader, type PackTables } from '../pack/pack-format.ts'
import { deflateTables, encodeTables } from '../pack/stored-tables.ts'

/** Blocks that are being compressed, or wait to be written, at a time. */
const BLOCKS_IN_FLIGHT_MAX = 32
/** A block of one large object compresses to far less than the memory that its output might need. */
const USUAL_RAW_BYTES_MAX = 65_536
/** The memory of an upload in full progress, besides its tables: the current batch and the blocks in flight. */
export const UPLOAD_BASE_BYTES: number = 2 * 1_048_576

/** Adds the objects of a batch to the pack: all of them, or only some. */
export interface PackAdmission<Batch extends ObjectBatch> {
  readonly memoryBytes: number
  /** The contents of the pack so far, as its quota counts them. */
  readonly added?: { readonly objects: number; readonly jsonBytes: number }
  admit(batch: Batch, builder: PackBuilder, signal: AbortSignal): Promise<void>
}

export interface PackWriterParts<Batch extends ObjectBatch> {
  readonly deflate: DeflatePool
  readonly admission: PackAdmission<Batch>
  readonly memory: MemoryLease
  readonly quota: QuotaReservation | undefined
  readonly environment: Environment
  /** Whether the tables are compressed too. */
  readonly deflatesTables?: boolean
}

/** A block that is being compressed, or is already; of a delta block only the delta. */
interface BlockInFlight {
  readonly block: ClosedBlock
  readonly deflated: Promise<Uint8Array> | Uint8Array
  /** The memory that was lent for it. */
  readonly memory: Uint8Array | undefined
}

/** Turns batches of objects into the bytes of a pack, compressing blocks beside the main thread. */
export class PackWriter<Batch extends ObjectBatch = ObjectBatch> {
  readonly #header: PackHeader
  readonly #deflate: DeflatePool
  readonly #admission: PackAdmission<Batch>
  readonly #quota: QuotaReservation | undefined
  readonly #bufferPool: BufferPool
  readonly #tablesMemory: MemoryPart
  readonly #builder: PackBuilder
  readonly #deflatesTables: boolean
  readonly #environment: Environment
  readonly #inFlight: BlockInFlight[] = []
  #packBytes = 0
  #finished: { readonly tables: PackTables; readonly tablesStart: number } | undefined

  constructor(header: PackHeader, parts: PackWriterParts<Batch>) {
    this.#header = header
    this.#builder = new PackBuilder(parts.environment, parts.memory.bufferPool)
    this.#deflate = parts.deflate
    this.#deflatesTables = parts.deflatesTables === true
    this.#environment = parts.environment
    this.#admission = parts.admission
    this.#quota = parts.quota
    this.#bufferPool = parts.memory.bufferPool
    this.#tablesMemory = parts.memory.part()
  }

  get packBytes(): number {
    return this.#packBytes
  }

  /** Objects that were let into the pack so far. */
  get objects(): number {
    return this.#builder.objects
  }

  /** The tables, and their start in the pack; available once `content` has yielded its last piece. */
  get finished(): { readonly tables: PackTables; readonly tablesStart: number } {
    if (this.#finished === undefined) throw new Error('the pack is not finished yet')
    return this.#finished
  }

  get #memoryBytes(): number {
    return this.#builder.memoryBytes + this.#admission.memoryBytes
  }

  /** The pack, block by block; its tables come in pieces of any size. A piece is valid until the next is asked for. */
  async *content(batches: AsyncIterable<Batch>, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    yield this.#counted(encodeHeader(this.#header))
    // An upload that is aborted ends at once, also while its source keeps it waiting.
    for await (const batch of abortable(batches, signal)) {
      await this.#admission.admit(batch, this.#builder, signal)
      if (this.#admission.added !== undefined) this.#quota?.check(this.#admission.added)
      await this.#tablesMemory.set(this.#memoryBytes)
      this.#bufferPool.giveBack(batch.lines)
      this.#bufferPool.giveBack(batch.names)
      this.#startCompressing()
      yield* this.#place(BLOCKS_IN_FLIGHT_MAX)
      signal.throwIfAborted()
    }
    this.#builder.closeBlock()
    this.#startCompressing()
    yield* this.#place(0)
    yield this.#counted(new Uint8Array(-this.#packBytes & 3))
    const tablesStart = this.#packBytes
    const { finishedBytes } = this.#builder
    await this.#tablesMemory.set(this.#memoryBytes + finishedBytes)
    const tables = await this.#builder.tables()
    // Ids are packed beside the tables. Compressing takes them in one piece, and the result.
    const besideBytes = this.#deflatesTables ? 2 * finishedBytes : PACKED_ID_BYTES * tables.objects
    await this.#tablesMemory.set(this.#memoryBytes + finishedBytes + besideBytes)
    const deflate = (raw: Uint8Array): Promise<Uint8Array> => this.#deflate.deflate(raw)
    const encoded = this.#deflatesTables
      ? await deflateTables(tables, tablesStart, deflate, this.#environment)
      : await encodeTables(tables, tablesStart, this.#environment)
    this.#finished = { tables, tablesStart }
    for (const chunk of encoded) yield this.#counted(chunk)
  }

  #startCompressing(): void {
    for (const block of this.#builder.takeClosed()) {
      if ('stored' in block) {
        this.#inFlight.push({ block, deflated: block.stored, memory: undefined })
        continue
      }
      const raw = 'delta' in block ? block.delta : block.raw
      const isUsual = raw.length <= USUAL_RAW_BYTES_MAX
      const memory = isUsual ? this.#bufferPool.take(deflatedBytesMax(raw.length)) : undefined
      const deflated = this.#deflate.deflate(raw, memory)
      // The error is thrown where the result is awaited; until then it must not count as unhandled.
      deflated.catch(() => undefined)
      this.#inFlight.push({ block, deflated, memory })
    }
  }

  /** Waits until at most `remaining` blocks are in flight. */
  async *#place(remaining: number): AsyncGenerator<Uint8Array> {
    while (this.#inFlight.length > remaining) {
      const { block, deflated: next, memory } = this.#inFlight.shift() as BlockInFlight
      const deflated = next instanceof Promise ? await next : next
      if ('raw' in block) this.#bufferPool.giveBack(block.raw)
      // The block that holds the base was placed before.
      const stored =
        'delta' in block
          ? encodeDeltaBlock(this.#builder.lineOf(block.baseOrdinal), block.delta.length, deflated)
          : deflated
      this.#builder.placed(stored, this.#packBytes)
      yield this.#counted(stored)
      // Whoever asks for the next piece is done with this one.
      if (memory !== undefined) this.#bufferPool.giveBack(memory)
    }
  }

  #counted(chunk: Uint8Array): Uint8Array {
    this.#packBytes += chunk.length
    return chunk
  }
}
