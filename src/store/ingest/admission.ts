import { crc32 } from 'node:zlib'
import type { Environment } from '../../environment.ts'
import { Yielder } from '../../async/yielder.ts'
import type { ObjectBatch, ReadyBlock } from '../../object/batch.ts'
import { DIFFERING_IDS_MAX } from '../../object/graph-store.ts'
import { IdSet } from '../../object/id-set.ts'
import type { RecordStore } from '../../storage/backend.ts'
import { LOOKUP_KEYS, readObjects } from '../records/locator.ts'
import type { ObjectRecord } from '../records/object-record.ts'
import type { PackBuilder } from '../pack/pack-builder.ts'
import type { ProjectHead } from '../records/records.ts'

/** The checksum of a longer text is computed in turns. */
const LONG_TEXT_BYTES = 1_048_576
/** The tab and the line feed of a line. */
const LINE_FRAME_BYTES = 2

/** Objects `first` up to `end` of a batch; the line of the first starts at byte `start`. */
interface Run {
  readonly first: number
  readonly end: number
  readonly start: number
}

/**
 * Admits objects that are neither held nor in the pack already, so that nothing is written twice, and counts the
 * arrivals. A condemned object does not count as held: it is written anew.
 */
export class Admission {
  readonly #records: RecordStore
  readonly #project: { readonly projectId: string; readonly generation: number }
  readonly #isNewProject: boolean
  /** Received ids that are held already, to count each once. */
  readonly #heldIds: IdSet
  readonly #environment: Environment
  #addedObjects = 0
  #addedJsonBytes = 0
  differing = 0
  /** The ids of the first of these. */
  readonly differingIds: string[] = []

  constructor(
    records: RecordStore,
    project: { readonly projectId: string; readonly generation: number; readonly head: ProjectHead | undefined },
    environment: Environment,
  ) {
    const { projectId, generation, head } = project
    this.#records = records
    this.#environment = environment
    this.#heldIds = new IdSet(undefined, undefined, environment.hashKey)
    this.#project = { projectId, generation }
    this.#isNewProject = head === undefined || head.removed
  }

  /** Received objects, each id once. */
  get objects(): number {
    return this.#addedObjects + this.#heldIds.size
  }

  /** The contents of the pack so far. */
  get added(): { readonly objects: number; readonly jsonBytes: number } {
    return { objects: this.#addedObjects, jsonBytes: this.#addedJsonBytes }
  }

  get memoryBytes(): number {
    return this.#heldIds.memoryBytes
  }

  async admit(batch: ObjectBatch, builder: PackBuilder, signal: AbortSignal): Promise<void> {
    if (batch.blocks !== undefined) return this.#admitBlocks(batch, batch.blocks, builder, signal)
    let start = 0
    for (let first = 0; first < batch.count; first += LOOKUP_KEYS) {
      const run = { first, end: Math.min(batch.count, first + LOOKUP_KEYS), start }
      start = await this.#admitEach(batch, run, await this.#held(batch, run, signal), builder)
    }
  }

  /** A block of new objects is taken as it is; of another one, each new object is added by itself. */
  async #admitBlocks(
    batch: ObjectBatch,
    blocks: readonly ReadyBlock[],
    builder: PackBuilder,
    signal: AbortSignal,
  ): Promise<void> {
    const held: (ObjectRecord | undefined)[] = []
    let start = 0
    for (let first = 0; first < batch.count; first += LOOKUP_KEYS) {
      const run = { first, end: Math.min(batch.count, first + LOOKUP_KEYS), start }
      for (const record of await this.#held(batch, run, signal)) held.push(record)
      start = endOf(batch, run)
    }
    start = 0
    let first = 0
    for (const block of blocks) {
      const run = { first, end: first + block.count, start }
      const heldHere = held.slice(first, run.end)
      const isNew = heldHere.every((record) => record?.state !== 'live')
      if (!isNew || !(await this.#adopt(batch, block, run, builder)))
        await this.#admitEach(batch, run, heldHere, builder)
      first = run.end
      start += block.rawBytes
    }
  }

  async #adopt(batch: ObjectBatch, block: ReadyBlock, run: Run, builder: PackBuilder): Promise<boolean> {
    const textCrc32 = new Uint32Array(block.count)
    let start = run.start
    let idBytes = 0
    for (let i = 0; i < block.count; i++) {
      const index = run.first + i
      const crc = this.#crc32Of(batch, index, start)
      textCrc32[i] = typeof crc === 'number' ? crc : await crc
      start += batch.lineBytes[index]
      idBytes += batch.idBytes[index]
    }
    if (!(await builder.adopt(batch, block, { first: run.first, start: run.start, textCrc32 }))) return false
    this.#addedObjects += block.count
    this.#addedJsonBytes += block.rawBytes - idBytes - LINE_FRAME_BYTES * block.count
    return true
  }

  /** Returns where the next line starts. */
  async #admitEach(
    batch: ObjectBatch,
    { first, end, start }: Run,
    held: readonly (ObjectRecord | undefined)[],
    builder: PackBuilder,
  ): Promise<number> {
    let at = start
    for (let index = first; index < end; index++) {
      const crc = this.#crc32Of(batch, index, at)
      const textCrc32 = typeof crc === 'number' ? crc : await crc
      const more = this.#admitOne(batch, index, at, textCrc32, held[index - first], builder)
      if (more !== undefined) await more
      at += batch.lineBytes[index]
    }
    return at
  }

  #crc32Of(batch: ObjectBatch, index: number, start: number): number | Promise<number> {
    const text = batch.lines.subarray(start + batch.idBytes[index] + 1, start + batch.lineBytes[index] - 1)
    return text.length > LONG_TEXT_BYTES ? crc32InTurns(text, this.#environment) : crc32(text)
  }

  async #held(
    batch: ObjectBatch,
    { first, end, start }: Run,
    signal: AbortSignal,
  ): Promise<readonly (ObjectRecord | undefined)[]> {
    if (this.#isNewProject) return []
    const ids: Uint8Array[] = []
    for (let index = first, at = start; index < end; at += batch.lineBytes[index++])
      ids.push(batch.lines.subarray(at, at + batch.idBytes[index]))
    return await readObjects(this.#records, this.#project, ids, signal)
  }

  #admitOne(
    batch: ObjectBatch,
    index: number,
    start: number,
    textCrc32: number,
    held: ObjectRecord | undefined,
    builder: PackBuilder,
  ): Promise<void> | undefined {
    const idEnd = start + batch.idBytes[index]
    const textBytes = batch.lineBytes[index] - batch.idBytes[index] - 2
    const ordinal = builder.find(batch.lines, start, idEnd)
    if (ordinal !== -1) {
      if (!builder.isSameText(ordinal, textBytes, textCrc32)) this.#noteDiffering(batch.lines.subarray(start, idEnd))
    } else if (held?.state === 'live') {
      this.#heldIds.add(batch.lines, start, idEnd)
      if (held.textBytes !== textBytes || held.textCrc32 !== textCrc32)
        this.#noteDiffering(batch.lines.subarray(start, idEnd))
    } else {
      this.#addedObjects++
      this.#addedJsonBytes += textBytes
      return builder.add(batch, index, start, textCrc32)
    }
    return undefined
  }

  #noteDiffering(id: Uint8Array): void {
    this.differing++
    if (this.differingIds.length < DIFFERING_IDS_MAX) this.differingIds.push(Buffer.from(id).toString('utf8'))
  }
}

function endOf({ lineBytes }: ObjectBatch, { first, end, start }: Run): number {
  let at = start
  for (let index = first; index < end; index++) at += lineBytes[index]
  return at
}

async function crc32InTurns(text: Uint8Array, environment: Environment): Promise<number> {
  const yielder = new Yielder(environment)
  let checksum = 0
  for (let at = 0; at < text.length; at += LONG_TEXT_BYTES) {
    checksum = crc32(text.subarray(at, at + LONG_TEXT_BYTES), checksum)
    await yielder.due()
  }
  return checksum
}
