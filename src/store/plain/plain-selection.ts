import { StowageError } from '../../errors.ts'
import type { Limits } from '../../limits.ts'
import type { ObjectBatch } from '../../object/batch.ts'
import type { Element } from '../../object/element.ts'
import { OBJECT_ID_BYTES_MAX } from '../../object/id.ts'
import type { IdSet } from '../../object/id-set.ts'
import { inspectBatches } from '../../inspect/inspect.ts'
import type { Fragment, Selection, SelectionReadOptions } from '../../object/selection.ts'
import type { ObjectStore, StoredObject } from './object-store.ts'

/** Ids that a host's store is asked for in one call. */
export const IDS_PER_CALL = 1_000

export interface PlainSelectionParts {
  readonly store: Pick<ObjectStore, 'get'>
  readonly projectId: string
  /** The root first, if there is one. */
  readonly ids: IdSet
  /** One byte for each id: whether it will be sent. */
  readonly held: Uint8Array
  /** One byte for each id: whether it counts as missing. */
  readonly absent: Uint8Array
  readonly limits: Pick<Limits, 'nestingMax'>
}

/** Ids of a host's store that are known to be held; the objects themselves are fetched while they are sent. */
export class PlainSelection implements Selection {
  readonly objects: number
  readonly missing: number
  readonly keepsIds = true
  readonly #parts: PlainSelectionParts

  constructor(parts: PlainSelectionParts) {
    this.#parts = parts
    this.objects = sum(parts.held)
    this.missing = sum(parts.absent)
  }

  missingIds(limit: number): Promise<readonly string[]> {
    const { ids, absent } = this.#parts
    const missing: string[] = []
    for (let at = absent.indexOf(1); at !== -1 && missing.length < limit; at = absent.indexOf(1, at + 1)) {
      if (ids.lengthAt(at) <= OBJECT_ID_BYTES_MAX) missing.push(ids.stringAt(at))
    }
    return Promise.resolve(missing)
  }

  async *lines(options: SelectionReadOptions): AsyncGenerator<Uint8Array> {
    let sent = 0
    for (const ids of this.#calls()) {
      for await (const batch of fetchBatches(this.#parts, ids, options.signal)) {
        sent += batch.count
        yield batch.lines
      }
    }
    if (sent !== this.objects)
      throw new StowageError('storage_unavailable', `${this.objects - sent} objects disappeared while they were sent`)
  }

  async *fragments(options: SelectionReadOptions): AsyncGenerator<readonly Fragment[]> {
    for await (const lines of this.lines(options)) yield [{ lines }]
  }

  release(): void {
    // Nothing is held between two calls of the host's store.
  }

  /** A store may answer one call in any order, so the first id, which may be a root, is asked for alone. */
  *#calls(): Generator<readonly string[]> {
    const { ids, held } = this.#parts
    let call: string[] = []
    for (let at = held.indexOf(1); at !== -1; at = held.indexOf(1, at + 1)) {
      call.push(ids.stringAt(at))
      if (call.length < IDS_PER_CALL && at !== 0) continue
      yield call
      call = []
    }
    if (call.length > 0) yield call
  }
}

/** The objects of these ids as a host holds them, checked and brought into lines as an upload would be. */
export function fetchBatches(
  from: {
    readonly store: Pick<ObjectStore, 'get'>
    readonly projectId: string
    readonly limits: Pick<Limits, 'nestingMax'>
  },
  ids: readonly string[],
  signal: AbortSignal,
): AsyncIterable<ObjectBatch> {
  return inspectBatches(elementsOf(from.store.get(from.projectId, ids, { signal })), from.limits, { signal })
}

export function idsOf(ids: IdSet, start: number, end: number): string[] {
  const strings: string[] = []
  for (let index = start; index < Math.min(end, ids.size); index++) strings.push(ids.stringAt(index))
  return strings
}

async function* elementsOf(batches: AsyncIterable<readonly StoredObject[]>): AsyncGenerator<readonly Element[]> {
  let index = 0
  for await (const records of batches) yield records.map((record) => ({ bytes: record.json, part: 0, index: index++ }))
}

function sum(flags: Uint8Array): number {
  let total = 0
  for (const flag of flags) total += flag
  return total
}
