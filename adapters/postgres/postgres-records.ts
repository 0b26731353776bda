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
import type { Connections, Row } from './connections.ts'
import { refuseNewer } from './migration.ts'
import { isOfAbsentPart } from './postgres-errors.ts'
import { type Statements, statementsOf } from './schema.ts'
import { byteaArray, framedValues } from './wire-values.ts'

const STEP_ENTRIES = 1_000
const STEP_BYTES = 1_048_576
const RANGE_PAGE_ENTRIES = 4_000

/** A commit is one statement; one of this size holds others up no longer than a step of any call does. */
export const POSTGRES_RECORD_LIMITS: RecordLimits = {
  ...CORE_RECORD_LIMITS,
  commitEntriesMax: STEP_ENTRIES,
  commitBytesMax: 4 * 1_048_576,
}

/** What stands in the place of an earlier value; see `insertRecords` in `schema.ts`. */
const GONE = -1
const PUT = -2

const FLAG = { put: 1, remove: 2, expect: 4 } as const

/** Records in one table, by functions of its schema. */
export class PostgresRecords implements RecordDriver {
  readonly #connections: Connections
  readonly #schema: string
  readonly #statements: Statements

  constructor(connections: Connections, schema: string) {
    this.#connections = connections
    this.#schema = schema
    this.#statements = statementsOf(schema)
  }

  async getMany(keys: readonly Uint8Array[], { signal }: CallOptions): Promise<readonly (Uint8Array | undefined)[]> {
    const values: (Uint8Array | undefined)[] = []
    while (values.length < keys.length) {
      const step = keys.slice(values.length, values.length + STEP_ENTRIES)
      const frame = await this.#frame(this.#statements.getMany, [byteaArray(step), STEP_BYTES], signal)
      const before = values.length
      for (const value of framedValues(frame)) values.push(typeof value === 'number' ? undefined : value)
      if (values.length === before) throw new Error('PostgreSQL returned no values')
    }
    return values
  }

  async *range(
    { gte, lt, limit = Infinity, reverse = false }: RangeBounds,
    { signal }: CallOptions,
  ): AsyncGenerator<readonly Entry[]> {
    let [first, last, left] = [gte, lt, limit]
    while (left > 0) {
      const entriesMax = Math.min(left, RANGE_PAGE_ENTRIES)
      const values = [Buffer.from(first), Buffer.from(last), entriesMax, STEP_BYTES, reverse]
      const page = entriesOf(await this.#frame(this.#statements.range, values, signal))
      const end = page.at(-1)
      if (!end) return
      const endKey = Buffer.from(end.key)
      yield page
      left -= page.length
      if (reverse) last = endKey
      else first = Buffer.concat([endKey, Buffer.of(0)]) // the next key that can exist
    }
  }

  async insertMany(entries: readonly Entry[], { signal }: CallOptions): Promise<readonly (Uint8Array | undefined)[]> {
    const found: (Uint8Array | undefined)[] = Array.from({ length: entries.length }, () => undefined)
    const [distinct, repeated] = inKeyOrder(entries)
    for (const step of steps(distinct)) {
      signal?.throwIfAborted()
      await this.#insertStep(step, found, signal)
    }
    for (const { index, firstIndex } of repeated) found[index] = copyOf(found[firstIndex] ?? entries[firstIndex].value)
    return found
  }

  async commit({ put, remove, expect }: Required<Change>, { signal }: CallOptions): Promise<CommitResult> {
    const named = namedKeys(put, remove, expect)
    if (named.length === 0) return { ok: true }
    const values = [
      byteaArray(named.map(({ key }) => key)),
      Buffer.from(named.map(({ flags }) => flags)),
      byteaArray(named.map(({ value }) => value)),
      byteaArray(named.map(({ expected }) => expected)),
    ]
    const rows = await this.#query(this.#statements.commit, values, signal)
    if (rows.length === 0) return { ok: true }
    const conflicts = rows.map(({ lost_index: at, held }): Conflict => {
      const value = held instanceof Uint8Array ? held : undefined
      return { index: named[Number(at)].expectIndex, value }
    })
    return { ok: false, conflicts: conflicts.toSorted((a, b) => a.index - b.index) }
  }

  /** Until each entry was put, or met an earlier value: one that went in between is tried again. */
  async #insertStep(
    step: readonly IndexedEntry[],
    found: (Uint8Array | undefined)[],
    signal: AbortSignal | undefined,
  ): Promise<void> {
    for (let open = step; open.length > 0;) {
      const values = [byteaArray(open.map(({ key }) => key)), byteaArray(open.map(({ value }) => value)), STEP_BYTES]
      const frame = await this.#frame(this.#statements.insertMany, values, signal)
      if (frame.length === 0) return
      const answers = [...framedValues(frame)]
      const unread = open.filter(
        (_, at) => typeof answers[at] === 'number' && answers[at] !== PUT && answers[at] !== GONE,
      )
      for (const [at, { index }] of open.entries()) {
        const answer = answers[at]
        if (typeof answer !== 'number') found[index] = answer
      }
      const gone = open.filter((_, at) => answers[at] === GONE)
      const read = await this.getMany(
        unread.map(({ key }) => key),
        { signal },
      )
      for (const [at, entry] of unread.entries()) {
        if (read[at] === undefined) gone.push(entry)
        else found[entry.index] = read[at]
      }
      open = gone.toSorted((a, b) => Buffer.compare(a.key, b.key))
    }
  }

  /** The one framed value that a function returns, empty for NULL. */
  async #frame(statement: string, values: readonly unknown[], signal: AbortSignal | undefined): Promise<Buffer> {
    const [row] = await this.#query(statement, values, signal)
    const frame = row?.frame ?? Buffer.alloc(0)
    if (!Buffer.isBuffer(frame)) throw new TypeError('PostgreSQL returned something other than bytes')
    return frame
  }

  /** Where a newer release has taken the schema over, the error says so. */
  async #query(
    statement: string,
    values: readonly unknown[],
    signal: AbortSignal | undefined,
  ): Promise<readonly Row[]> {
    try {
      return await this.#connections.run(signal, (connection) => connection.query(statement, values))
    } catch (error) {
      if (isOfAbsentPart(error))
        await this.#connections.run(signal, (connection) => refuseNewer(connection, this.#schema))
      throw error
    }
  }
}

function entriesOf(frame: Buffer): Entry[] {
  const entries: Entry[] = []
  let key: Uint8Array | undefined
  for (const value of framedValues(frame)) {
    if (typeof value === 'number') throw new Error('PostgreSQL returned an entry without a value')
    if (key) entries.push({ key, value })
    key = key ? undefined : value
  }
  return entries
}

interface IndexedEntry extends Entry {
  readonly index: number
}

interface RepeatedEntry {
  readonly index: number
  readonly firstIndex: number
}

/** The first entry of each key, by key, and the others. */
function inKeyOrder(entries: readonly Entry[]): readonly [readonly IndexedEntry[], readonly RepeatedEntry[]] {
  const distinct: IndexedEntry[] = []
  const repeated: RepeatedEntry[] = []
  const sorted = entries
    .map(({ key, value }, index) => ({ key, value, index }))
    .toSorted((a, b) => Buffer.compare(a.key, b.key) || a.index - b.index)
  for (const entry of sorted) {
    const before = distinct.at(-1)
    if (before && Buffer.compare(before.key, entry.key) === 0)
      repeated.push({ index: entry.index, firstIndex: before.index })
    else distinct.push(entry)
  }
  return [distinct, repeated]
}

function* steps(entries: readonly IndexedEntry[]): Generator<readonly IndexedEntry[]> {
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

interface NamedKey {
  readonly key: Uint8Array
  flags: number
  value: Uint8Array | undefined
  expected: Uint8Array | undefined
  expectIndex: number
}

/** Every key that a change names, once and in ascending order, in which PostgreSQL locks them. */
function namedKeys(
  put: Required<Change>['put'],
  remove: Required<Change>['remove'],
  expect: Required<Change>['expect'],
): NamedKey[] {
  const byKey = new Map<string, NamedKey>()
  const named = (key: Uint8Array): NamedKey => {
    const text = Buffer.from(key.buffer, key.byteOffset, key.length).toString('latin1')
    const entry = byKey.get(text) ?? { key, flags: 0, value: undefined, expected: undefined, expectIndex: -1 }
    byKey.set(text, entry)
    return entry
  }
  for (const { key, value } of put) {
    const entry = named(key)
    entry.flags |= FLAG.put
    entry.value = value
  }
  for (const key of remove) named(key).flags |= FLAG.remove
  for (const [expectIndex, { key, value }] of expect.entries()) {
    const entry = named(key)
    entry.flags |= FLAG.expect
    entry.expected = value
    entry.expectIndex = expectIndex
  }
  return [...byKey.values()].toSorted((a, b) => Buffer.compare(a.key, b.key))
}

function copyOf(bytes: Uint8Array): Uint8Array {
  return Uint8Array.from(bytes)
}
