import { createHash } from 'node:crypto'
import { type Clock, timeText } from '../../environment.ts'
import { StowageError } from '../../errors.ts'
import type { BlobStore, Change, Entry, Expectation, RecordStore, StorageBackend } from '../../storage/backend.ts'
import type { Page, PageRequest } from '../schemas/types.ts'
import { decodeRecord, encodeRecord } from './codec.ts'
import { boundsOf, generationText, globalKey, partsOf, type ProjectTable, projectKey, type Scope } from './keys.ts'

/** A record as it was read, with its bytes, which a change of it expects. */
export interface Stored<T> {
  readonly key: Uint8Array
  readonly bytes: Uint8Array
  readonly value: T
}

/** A project that automation holds something of. Every change of it expects that it is still this generation. */
export interface ProjectScope extends Scope {
  readonly head: Expectation
}

interface Head {
  readonly generation: number
  readonly removed: boolean
}

export const PAGE_ITEMS_DEFAULT = 100
/** A part of a list with more bytes than this is short. */
const PAGE_BYTES_MAX = 4 * 1_048_576
const ATTEMPTS_MAX = 50
const TIME_DIGITS = 12
const ID_DIGITS = 32
const BLOB_SUFFIX_DIGITS = 16

/** Records of automation on a storage, by project. All state changes are compare-and-set. */
export class AutomationStore {
  readonly records: RecordStore
  readonly blobs: BlobStore
  readonly clock: Clock
  readonly #newId: () => string

  constructor(backend: StorageBackend, parts: { readonly clock: Clock; readonly newId: () => string }) {
    this.records = backend.records
    this.blobs = backend.blobs
    this.clock = parts.clock
    this.#newId = parts.newId
  }

  /** The same, as long as `fence` holds: its commits throw `conflict` when another server has taken over. */
  fencedBy(fence: Expectation): AutomationStore {
    const { records, blobs, clock } = this
    return new AutomationStore(
      { records: fencedRecords(records, fence), blobs, close: () => Promise.resolve() },
      { clock, newId: this.#newId },
    )
  }

  /** 32 hex digits: the time first, so that ids sort by age, not before `after`; then randomness. */
  newId(after?: string): string {
    const earliest = after === undefined ? 0 : Number.parseInt(after.slice(0, TIME_DIGITS), 16) + 1
    return timedId(Math.max(this.clock.now(), earliest), this.#newId())
  }

  /** 16 random hex digits, for the name of a blob. */
  newBlobSuffix(): string {
    return this.#newId().slice(-BLOB_SUFFIX_DIGITS)
  }

  nowText(): string {
    return timeText(this.clock.now())
  }

  /** The project, for reading; `undefined` if automation holds nothing of it. */
  async scope(projectId: string): Promise<ProjectScope | undefined> {
    const { head, expectation } = await this.#head(projectId)
    return head === undefined || head.removed
      ? undefined
      : { projectId, generation: head.generation, head: expectation }
  }

  /** The projects among these that automation holds something of, for reading. */
  async scopes(projectIds: ReadonlySet<string>): Promise<ReadonlyMap<string, Scope>> {
    const ids = [...projectIds]
    const heads = await this.getMany<Head>(ids.map((id) => globalKey('head', id)))
    const scopes = new Map<string, Scope>()
    for (const [at, head] of heads.entries())
      if (head?.removed === false) scopes.set(ids[at], { projectId: ids[at], generation: head.generation })
    return scopes
  }

  /** The project, for writing; it is created if it does not exist. */
  async writingScope(projectId: string): Promise<ProjectScope> {
    let read = await this.#head(projectId)
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const { head, expectation } = read
      if (head !== undefined && !head.removed) return { projectId, generation: head.generation, head: expectation }
      const next: Head = { generation: (head?.generation ?? 0) + 1, removed: false }
      const value = encodeRecord(expectation.key, next)
      const result = await this.records.commit({ put: [{ key: expectation.key, value }], expect: [expectation] })
      if (result.ok) return { projectId, generation: next.generation, head: { key: expectation.key, value } }
      read = asHead(expectation.key, result.conflicts[0].value)
    }
    throw contended()
  }

  /** Ids of the projects that automation holds something of, in batches. */
  async *projects(): AsyncGenerator<readonly string[]> {
    for await (const entries of this.records.range(boundsOf(globalKey('head')))) {
      yield entries
        .filter(({ key, value }) => !decodeRecord<Head>(key, value).removed)
        .map(({ key }) => partsOf(key)[2])
    }
  }

  /** Makes everything of the project unreadable, and marks it for sweeping. */
  async removeProject(projectId: string): Promise<void> {
    let read = await this.#head(projectId)
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const { head, expectation } = read
      if (head === undefined || head.removed) return
      const garbage = globalKey('garbage', projectId, generationText(head.generation))
      const put = [this.entry(expectation.key, { ...head, removed: true }), this.entry(garbage, {})]
      const result = await this.records.commit({ put, expect: [expectation] })
      if (result.ok) return
      read = asHead(expectation.key, result.conflicts[0].value)
    }
    throw contended()
  }

  entry(key: Uint8Array, value: unknown): Entry {
    return { key, value: encodeRecord(key, value) }
  }

  async get<T>(scope: Scope, table: ProjectTable, ...parts: readonly string[]): Promise<Stored<T> | undefined> {
    return this.getByKey(projectKey(scope, table, ...parts))
  }

  async getByKey<T>(key: Uint8Array): Promise<Stored<T> | undefined> {
    const [bytes] = await this.records.getMany([key])
    return bytes === undefined ? undefined : { key, bytes, value: decodeRecord<T>(key, bytes) }
  }

  async getMany<T>(keys: readonly Uint8Array[]): Promise<readonly (T | undefined)[]> {
    const values = await this.records.getMany(keys)
    return values.map((bytes, at) => (bytes === undefined ? undefined : decodeRecord<T>(keys[at], bytes)))
  }

  /** False when something that it expects is not so any more, the project itself included. */
  async commit(scope: ProjectScope, change: Change): Promise<boolean> {
    const result = await this.records.commit({ ...change, expect: [scope.head, ...(change.expect ?? [])] })
    return result.ok
  }

  /**
   * Runs a change that reads and commits, and repeats it until the values that it read still hold when it commits.
   * `undefined` asks for another try.
   */
  async retried<T>(attempt: () => Promise<T | undefined>): Promise<T> {
    for (let count = 0; count < ATTEMPTS_MAX; count++) {
      const result = await attempt()
      if (result !== undefined) return result
    }
    throw contended()
  }

  /**
   * Entries below `prefix`, by the last part of their keys. The cursor is that part of the last one that was looked at.
   */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- who asks knows what lies there
  async page<T>(
    prefix: Uint8Array,
    request: PageRequest & { readonly newestFirst?: boolean },
  ): Promise<Page<{ readonly name: string; readonly value: T }>> {
    const { limit = PAGE_ITEMS_DEFAULT, cursor, newestFirst = false } = request
    const bounds = boundsOf(prefix)
    const from =
      cursor === undefined
        ? bounds
        : newestFirst
          ? { ...bounds, lt: keyBelow(prefix, cursor) }
          : { ...bounds, gte: keyAfter(prefix, cursor) }
    const items: { name: string; value: T }[] = []
    let bytes = 0
    for await (const entries of this.records.range({ ...from, limit: limit + 1, reverse: newestFirst })) {
      for (const { key, value } of entries) {
        if (items.length === limit || bytes > PAGE_BYTES_MAX) return { items, cursor: items.at(-1)?.name ?? null }
        items.push({ name: lastPart(key), value: decodeRecord<T>(key, value) })
        bytes += value.length
      }
    }
    return { items, cursor: null }
  }

  async #head(projectId: string): Promise<ReadHead> {
    const key = globalKey('head', projectId)
    const [value] = await this.records.getMany([key])
    return asHead(key, value)
  }
}

interface ReadHead {
  readonly head: Head | undefined
  readonly expectation: Expectation
}

function asHead(key: Uint8Array, value: Uint8Array | undefined): ReadHead {
  return { head: value === undefined ? undefined : decodeRecord<Head>(key, value), expectation: { key, value } }
}

/** An id that sorts by `timeMs` and is always the same for the same `seed`. */
export function timedId(timeMs: number, seed: string): string {
  const random = createHash('sha256').update(seed, 'utf8').digest('hex')
  return `${timeMs.toString(16).padStart(TIME_DIGITS, '0')}${random}`.slice(0, ID_DIGITS)
}

export function timeOfId(id: string): number {
  return Number.parseInt(id.slice(0, TIME_DIGITS), 16)
}

export function expectSame({ key, bytes }: Stored<unknown>): Expectation {
  return { key, value: bytes }
}

export function expectAbsent(key: Uint8Array): Expectation {
  return { key, value: undefined }
}

function fencedRecords(records: RecordStore, fence: Expectation): RecordStore {
  return {
    limits: records.limits,
    getMany: (keys, options) => records.getMany(keys, options),
    range: (bounds, options) => records.range(bounds, options),
    insertMany: (entries, options) => records.insertMany(entries, options),
    commit: async (change, options) => {
      const { expect = [] } = change
      const result = await records.commit({ ...change, expect: [...expect, fence] }, options)
      if (!result.ok && result.conflicts.some(({ index }) => index === expect.length))
        throw new StowageError('conflict', 'another server does this work now')
      return result
    },
    close: () => Promise.resolve(),
  }
}

function keyBelow(prefix: Uint8Array, name: string): Uint8Array {
  return Buffer.concat([prefix, Buffer.from(`${name}\0`)])
}

function keyAfter(prefix: Uint8Array, name: string): Uint8Array {
  return Buffer.concat([prefix, Buffer.from(`${name}\u0001`)])
}

function lastPart(key: Uint8Array): string {
  const text = Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('utf8')
  return text.slice(text.lastIndexOf('\0', text.length - 2) + 1, -1)
}

function contended(): StowageError {
  return new StowageError('overloaded', 'too many concurrent changes; try again shortly', {
    headers: { 'Retry-After': '1' },
  })
}
