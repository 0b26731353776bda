import { crc32 } from 'node:zlib'
import type { Annotation, AnnotationLevel } from '../../automation/author/run-data.ts'
import { StowageError } from '../../errors.ts'
import { checkObjectId } from '../../object/id.ts'
import type { Entry } from '../../storage/backend.ts'
import { BLOB_READ_BYTES_MAX } from '../../storage/backend.ts'
import { blobName, projectKey } from '../records/keys.ts'
import { type AutomationStore, PAGE_ITEMS_DEFAULT, type ProjectScope } from '../records/store.ts'
import type { Page, AnnotationFilter } from '../schemas/types.ts'
import { NO_ANNOTATIONS, type RunRecord } from './run-record.ts'

const INLINE_BYTES_MAX = 48_000
const BATCH_DIGITS = 8
/** Read for one page, so that a rare annotation among many takes several pages and not one long wait. */
const SCANNED_BYTES_MAX = 16 * 1_048_576
/** The minimum cost of reading one record, in the same bytes. */
const BATCH_COST_BYTES = 8_192

type Counts = { readonly [L in AnnotationLevel]: number }

/** The annotations of one report. Few lie in their record, many in a blob that it names. */
interface BatchRecord {
  readonly counts: Counts
  readonly bytes: number
  readonly items: readonly Annotation[] | null
  readonly blob: { readonly name: string; readonly crc32: number } | null
}

/** A batch that is stored, but belongs to no run yet. */
export interface PreparedAnnotations {
  readonly batch: BatchRecord
  readonly objects: number
}

type AnnotationState = Pick<
  RunRecord,
  'id' | 'annotationBatches' | 'annotationObjects' | 'annotationBytes' | 'annotations'
>
interface AnnotationBounds {
  readonly annotationObjectsMax: number
  readonly annotationBytesMax: number
}

/** Annotations of runs. */
export class Annotations {
  readonly #store: AutomationStore
  readonly #bounds: AnnotationBounds

  constructor(store: AutomationStore, bounds: AnnotationBounds) {
    this.#store = store
    this.#bounds = bounds
  }

  /**
   * Stores annotations that are too large for a record. Call `discard` if they are not committed. Throws
   * `annotations_too_large`.
   */
  async prepare(scope: ProjectScope, run: AnnotationState, items: readonly Annotation[]): Promise<PreparedAnnotations> {
    const json = Buffer.from(JSON.stringify(items), 'utf8')
    const objects = items.reduce((sum, { objectAppIds }) => sum + Object.keys(objectAppIds).length, 0)
    this.#checkRoom(run, objects, json.length)
    const counts = countsOf(items)
    if (json.length <= INLINE_BYTES_MAX) return { batch: { counts, bytes: json.length, items, blob: null }, objects }
    const name = blobName(scope, 'annotation', `${run.id}-${this.#store.newBlobSuffix()}`)
    await this.#store.blobs.put(name, oneChunk(json), { sizeHintBytes: json.length })
    return { batch: { counts, bytes: json.length, items: null, blob: { name, crc32: crc32(json) } }, objects }
  }

  async discard({ batch }: PreparedAnnotations): Promise<void> {
    // A blob that cannot be removed now is swept later: no record names it.
    if (batch.blob !== null) await this.#store.blobs.remove([batch.blob.name]).catch(() => undefined)
  }

  /** The record of a batch, and the run's new summary of its annotations. Throws `annotations_too_large`. */
  added(
    scope: ProjectScope,
    run: AnnotationState,
    { batch, objects }: PreparedAnnotations,
  ): { readonly put: readonly Entry[]; readonly run: Omit<AnnotationState, 'id'> } {
    this.#checkRoom(run, objects, batch.bytes)
    const put = [this.#store.entry(projectKey(scope, 'annotation', run.id, batchText(run.annotationBatches)), batch)]
    const annotations = { ...NO_ANNOTATIONS }
    for (const level of Object.keys(annotations) as AnnotationLevel[])
      annotations[level] = run.annotations[level] + batch.counts[level]
    return {
      put,
      run: {
        annotationBatches: run.annotationBatches + 1,
        annotationObjects: run.annotationObjects + objects,
        annotationBytes: run.annotationBytes + batch.bytes,
        annotations,
      },
    }
  }

  /** In the order in which they were reported. Throws `invalid_id`. */
  async list(scope: ProjectScope, run: AnnotationState, filter: AnnotationFilter): Promise<Page<Annotation>> {
    if (filter.objectId !== undefined) checkObjectId(filter.objectId)
    const { limit = PAGE_ITEMS_DEFAULT } = filter
    const items: Annotation[] = []
    let { batch: number, item } = parseCursor(filter.cursor)
    for (let scanned = 0; number < run.annotationBatches; number++, item = 0) {
      if (scanned > SCANNED_BYTES_MAX) return { items, cursor: cursorText(number, 0) }
      const batch = await this.#batch(scope, run.id, number)
      scanned += BATCH_COST_BYTES
      if (filter.level !== undefined && batch.counts[filter.level] === 0) continue
      const all = await this.#items(batch)
      scanned += batch.bytes
      for (; item < all.length; item++) {
        if (!fits(all[item], filter)) continue
        if (items.length === limit) return { items, cursor: cursorText(number, item) }
        items.push(all[item])
      }
    }
    return { items, cursor: null }
  }

  #checkRoom(run: AnnotationState, objects: number, bytes: number): void {
    const { annotationObjectsMax, annotationBytesMax } = this.#bounds
    if (run.annotationObjects + objects > annotationObjectsMax)
      throw new StowageError(
        'annotations_too_large',
        `with this report the annotations of the run name ${run.annotationObjects + objects} objects; the limit is ${annotationObjectsMax}`,
      )
    if (run.annotationBytes + bytes > annotationBytesMax)
      throw new StowageError(
        'annotations_too_large',
        `with this report the annotations of the run have ${run.annotationBytes + bytes} bytes; the limit is ${annotationBytesMax}`,
      )
  }

  async #batch(scope: ProjectScope, runId: string, number: number): Promise<BatchRecord> {
    const stored = await this.#store.get<BatchRecord>(scope, 'annotation', runId, batchText(number))
    if (stored === undefined)
      throw new StowageError('corrupt_data', `annotations of a run are missing: batch ${number} has no record`)
    return stored.value
  }

  async #items({ items, blob, bytes }: BatchRecord): Promise<readonly Annotation[]> {
    if (blob === null) return items ?? []
    const json = await readBlob(this.#store, blob.name, bytes)
    if (crc32(json) !== blob.crc32)
      throw new StowageError('corrupt_data', 'annotations of a run do not match their CRC-32')
    return JSON.parse(json.toString('utf8')) as readonly Annotation[]
  }
}

async function readBlob({ blobs }: AutomationStore, name: string, bytes: number): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  for (let start = 0; start < bytes; start += BLOB_READ_BYTES_MAX)
    pieces.push(await blobs.read(name, start, Math.min(bytes, start + BLOB_READ_BYTES_MAX)))
  return Buffer.concat(pieces)
}

function countsOf(items: readonly Annotation[]): Counts {
  const counts = { ...NO_ANNOTATIONS }
  for (const { level } of items) counts[level]++
  return counts
}

function fits({ level, category, objectAppIds }: Annotation, filter: AnnotationFilter): boolean {
  return (
    (filter.level ?? level) === level &&
    (filter.category ?? category) === category &&
    (filter.objectId === undefined || Object.hasOwn(objectAppIds, filter.objectId))
  )
}

function batchText(number: number): string {
  return number.toString(16).padStart(BATCH_DIGITS, '0')
}

function cursorText(batch: number, item: number): string {
  return `${batch.toString(16)}.${item.toString(16)}`
}

/** The format of `cursorText`. */
const CURSOR = /^([\da-f]{1,8})\.([\da-f]{1,8})$/

function parseCursor(cursor = '0.0'): { batch: number; item: number } {
  const [, batch, item] = CURSOR.exec(cursor) ?? []
  if (batch !== undefined) return { batch: Number.parseInt(batch, 16), item: Number.parseInt(item, 16) }
  throw new StowageError('invalid_request', 'the cursor does not come from a page of annotations')
}

async function* oneChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}
