import { crc32 } from 'node:zlib'
import type { Environment } from '../../environment.ts'
import { Yielder } from '../../async/yielder.ts'
import type { ObjectBatch } from '../../object/batch.ts'
import { DIFFERING_IDS_MAX } from '../../object/graph-store.ts'
import { IdSet } from '../../object/id-set.ts'
import type { RecordStore } from '../../storage/backend.ts'
import { LOOKUP_KEYS, readObjects } from '../records/locator.ts'
import type { ObjectRecord } from '../records/object-record.ts'
import type { PackBuilder } from '../pack/pack-builder.ts'
import type { ProjectHead } from '../records/records.ts'

/** The checksum of a longer text is computed in turns. */
const LONG_TEXT_BYTES = 1_048_576

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
    let start = 0
    for (let first = 0; first < batch.count; first += LOOKUP_KEYS) {
      const end = Math.min(batch.count, first + LOOKUP_KEYS)
      const held = this.#isNewProject ? [] : await this.#held(batch, first, end, start, signal)
      for (let index = first; index < end; index++) {
        const text = batch.lines.subarray(start + batch.idBytes[index] + 1, start + batch.lineBytes[index] - 1)
        const textCrc32 = text.length > LONG_TEXT_BYTES ? await crc32InTurns(text, this.#environment) : crc32(text)
        const more = this.#admitOne(batch, index, start, textCrc32, held[index - first], builder)
        if (more !== undefined) await more
        start += batch.lineBytes[index]
      }
    }
  }

  #held(
    batch: ObjectBatch,
    first: number,
    end: number,
    start: number,
    signal: AbortSignal,
  ): ReturnType<typeof readObjects> {
    const ids: Uint8Array[] = []
    for (let index = first, at = start; index < end; at += batch.lineBytes[index++])
      ids.push(batch.lines.subarray(at, at + batch.idBytes[index]))
    return readObjects(this.#records, this.#project, ids, signal)
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

async function crc32InTurns(text: Uint8Array, environment: Environment): Promise<number> {
  const yielder = new Yielder(environment)
  let checksum = 0
  for (let at = 0; at < text.length; at += LONG_TEXT_BYTES) {
    checksum = crc32(text.subarray(at, at + LONG_TEXT_BYTES), checksum)
    await yielder.due()
  }
  return checksum
}
