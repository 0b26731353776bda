import { CORE_RECORD_LIMITS } from '../src/storage/backend.ts'
import type {
  CallOptions,
  Change,
  CommitResult,
  Entry,
  Expectation,
  RangeBounds,
  RecordLimits,
  RecordStore,
} from '../src/storage/backend.ts'
import { checkChange, checkEntries, checkKeys, checkRange } from '../src/storage/checks.ts'
import { passErrno } from './errno.ts'
import { Gate } from './gate.ts'
import type { LevelDatabase } from './level-database.ts'
import type { LevelWriter, WriteView } from './level-writer.ts'

/** One step of a long call: what a thread of the pool reads, or a batch writes, without a pause for others. */
const STEP_ENTRIES = 1_000
const STEP_BYTES = 1_048_576
const RANGE_BATCH_BYTES = 262_144

export interface RecordsPart {
  readonly database: LevelDatabase
  readonly writer: LevelWriter
}

/** Records in a LevelDB, one record a key. */
export class LevelRecords implements RecordStore {
  readonly limits: RecordLimits = CORE_RECORD_LIMITS
  readonly #gate = new Gate()
  readonly #open: () => Promise<RecordsPart>
  readonly #release: () => Promise<void>

  constructor(open: () => Promise<RecordsPart>, release: () => Promise<void>) {
    this.#open = open
    this.#release = release
  }

  getMany(keys: readonly Uint8Array[], { signal }: CallOptions = {}): Promise<readonly (Uint8Array | undefined)[]> {
    return this.#gate.pass(signal, async () => {
      checkKeys(keys, this.limits)
      const { database } = await this.#open()
      const values: (Uint8Array | undefined)[] = []
      for (let from = 0; from < keys.length; from += STEP_ENTRIES) {
        signal?.throwIfAborted()
        values.push(...(await passErrno(database.getMany(keys.slice(from, from + STEP_ENTRIES)))))
      }
      signal?.throwIfAborted()
      return values
    })
  }

  async *range(bounds: RangeBounds, { signal }: CallOptions = {}): AsyncIterable<readonly Entry[]> {
    this.#gate.check(signal)
    checkRange(bounds)
    const { gte, lt, limit = -1, reverse = false } = bounds
    const { database } = await this.#gate.pass(signal, this.#open)
    // Zero bytes end LevelDB's bounds nowhere special, but an empty `gte` means "no bound" to it and an empty `lt` nothing at all.
    if (limit === 0 || lt.length === 0) return
    const iterator = database.iterator({
      ...(gte.length > 0 ? { gte } : {}),
      lt,
      limit,
      reverse,
      highWaterMarkBytes: RANGE_BATCH_BYTES,
    })
    try {
      for (;;) {
        const batch = await this.#gate.pass(signal, () => passErrno(iterator.nextv(STEP_ENTRIES)))
        if (batch.length === 0) return
        yield batch.map(([key, value]) => ({ key, value }))
      }
    } finally {
      await iterator.close()
    }
  }

  insertMany(entries: readonly Entry[], { signal }: CallOptions = {}): Promise<readonly (Uint8Array | undefined)[]> {
    return this.#gate.pass(signal, async () => {
      checkEntries(entries, this.limits)
      const { writer } = await this.#open()
      const found: (Uint8Array | undefined)[] = []
      for (const step of steps(entries)) {
        signal?.throwIfAborted()
        const reads = step.map((entry) => entry.key)
        const job = {
          reads,
          bytes: bytesOf(step),
          apply: (view: WriteView) => step.map((entry) => insert(view, entry)),
        }
        found.push(...(await writer.run(job, signal)))
      }
      return found
    })
  }

  commit(change: Change, { signal }: CallOptions = {}): Promise<CommitResult> {
    return this.#gate.pass(signal, async () => {
      checkChange(change, this.limits)
      const { writer } = await this.#open()
      const { put = [], remove = [], expect = [] } = change
      const reads = expect.map((expectation) => expectation.key)
      return writer.run({ reads, bytes: bytesOf(put), apply: (view) => commit(view, put, remove, expect) }, signal)
    })
  }

  close(): Promise<void> {
    return this.#gate.close(this.#release)
  }
}

function insert(view: WriteView, { key, value }: Entry): Uint8Array | undefined {
  const held = view.get(key)
  if (held) return Uint8Array.from(held)
  view.put(key, value)
  return undefined
}

function commit(
  view: WriteView,
  put: readonly Entry[],
  remove: readonly Uint8Array[],
  expect: readonly Expectation[],
): CommitResult {
  const conflicts = expect.flatMap(({ key, value }, at) => (sameBytes(view.get(key), value) ? [] : [at]))
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
