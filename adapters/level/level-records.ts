import {
  type CallOptions,
  type Change,
  type CommitResult,
  type Conflict,
  CORE_RECORD_LIMITS,
  type Entry,
  type RangeBounds,
  type RecordLimits,
} from '../../src/storage/backend.ts'
import type { RecordDriver } from '../../src/storage/driver.ts'
import { passErrno } from '../common/errno.ts'
import type { LevelDatabase } from './database.ts'
import type { LevelWriter, WriteView } from './level-writer.ts'
import type { SortedReader } from './sorted-reader.ts'

/**
 * One step of a long call: the entries that a thread of the pool reads, or a batch writes, without a pause for others.
 */
const STEP_ENTRIES = 1_000
const STEP_BYTES = 1_048_576
const RANGE_BATCH_BYTES = 262_144

/** Each commit costs a sync. One of this size holds others up no longer than a step of any call does. */
export const LEVEL_RECORD_LIMITS: RecordLimits = {
  ...CORE_RECORD_LIMITS,
  commitEntriesMax: STEP_ENTRIES,
  commitBytesMax: 4 * 1_048_576,
}

export interface RecordsPart {
  readonly database: LevelDatabase
  readonly reader: SortedReader
  readonly writer: LevelWriter
}

/** Records in a LevelDB, one record a key. */
export class LevelRecords implements RecordDriver {
  readonly #database: LevelDatabase
  readonly #reader: SortedReader
  readonly #writer: LevelWriter

  constructor({ database, reader, writer }: RecordsPart) {
    this.#database = database
    this.#reader = reader
    this.#writer = writer
  }

  async getMany(keys: readonly Uint8Array[], { signal }: CallOptions): Promise<readonly (Uint8Array | undefined)[]> {
    signal?.throwIfAborted()
    const quick = this.#reader.getNow(keys)
    if (quick !== undefined) return quick
    const values: (Uint8Array | undefined)[] = []
    for (let from = 0; from < keys.length; from += STEP_ENTRIES) {
      signal?.throwIfAborted()
      const some = keys.slice(from, from + STEP_ENTRIES)
      values.push(...(await this.#writer.absent.noteAbsent(some, () => this.#reader.getMany(some))))
    }
    signal?.throwIfAborted()
    return values
  }

  async *range({ gte, lt, limit = -1, reverse = false }: RangeBounds): AsyncGenerator<readonly Entry[]> {
    const iterator = this.#database.iterator({
      // To LevelDB an empty `gte` means no bound.
      ...(gte.length > 0 ? { gte } : {}),
      lt,
      limit,
      reverse,
      highWaterMarkBytes: RANGE_BATCH_BYTES,
    })
    try {
      for (;;) {
        const batch = await passErrno(iterator.nextv(STEP_ENTRIES))
        if (batch.length === 0) return
        yield batch.map(([key, value]) => ({ key, value }))
      }
    } finally {
      await iterator.close()
    }
  }

  async insertMany(entries: readonly Entry[], { signal }: CallOptions): Promise<readonly (Uint8Array | undefined)[]> {
    const found: (Uint8Array | undefined)[] = []
    for (const step of steps(entries)) {
      signal?.throwIfAborted()
      const reads = step.map((entry) => entry.key)
      const job = { reads, bytes: bytesOf(step), apply: (view: WriteView) => step.map((entry) => insert(view, entry)) }
      found.push(...(await this.#writer.run(job, signal)))
    }
    return found
  }

  commit(change: Required<Change>, { signal }: CallOptions): Promise<CommitResult> {
    const reads = change.expect.map((expectation) => expectation.key)
    return this.#writer.run({ reads, bytes: bytesOf(change.put), apply: (view) => commit(view, change) }, signal)
  }
}

function insert(view: WriteView, { key, value }: Entry): Uint8Array | undefined {
  const held = view.insert(key, value)
  return held && Uint8Array.from(held)
}

function commit(view: WriteView, { put, remove, expect }: Required<Change>): CommitResult {
  const conflicts = expect.flatMap(({ key, value }, index): Conflict[] => {
    const held = view.get(key)
    return sameBytes(held, value) ? [] : [{ index, value: held && Uint8Array.from(held) }]
  })
  if (conflicts.length > 0) return { ok: false, conflicts }
  for (const { key, value } of put) view.put(key, value)
  for (const key of remove) view.remove(key)
  return { ok: true }
}

function sameBytes(held: Uint8Array | undefined, expected: Uint8Array | undefined): boolean {
  if (!held || !expected) return held === expected
  return Buffer.compare(held, expected) === 0
}

function* steps(entries: readonly Entry[]): Generator<readonly Entry[]> {
  let [from, bytes] = [0, 0]
  for (const [at, { key, value }] of entries.entries()) {
    bytes += key.length + value.length
    if (at > from && (at - from >= STEP_ENTRIES || bytes > STEP_BYTES)) {
      yield entries.slice(from, at)
      ;[from, bytes] = [at, key.length + value.length]
    }
  }
  if (from < entries.length) yield entries.slice(from)
}

function bytesOf(entries: readonly Entry[]): number {
  return entries.reduce((sum, { key, value }) => sum + key.length + value.length, 0)
}
