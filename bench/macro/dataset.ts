import { createWriteStream } from 'node:fs'
import { mkdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { building, type BuildingOptions, type ModelObject } from '../model/building.ts'
import { MB } from '../measure.ts'
import { inBatches, jsonArray } from '../upload.ts'

export interface Version {
  readonly name: string
  readonly rootId: string
  readonly objects: number
  /** Bytes of all its objects as JSON, and as lines `<id> TAB <json> LF`. */
  readonly jsonBytes: number
  readonly textBytes: number
  /**
   * A folder with the uploads of it: gzipped arrays of about 1 MB; for the second version only the objects that the
   * first lacks.
   */
  readonly uploads: string
  readonly uploadedJsonBytes: number
  readonly uploadedGzipBytes: number
}

export interface Dataset {
  readonly first: Version
  readonly second: Version
  /** The first version as one JSON array, and all its uploads one after the other as one gzip file. */
  readonly arrayFile: string
  readonly gzipFile: string
}

const SECOND_CHANGED = 0.05
const compress = promisify(gzip)

/**
 * A building of two versions, the second with 1 in 20 objects changed, written into `folder` as the requests that
 * upload it.
 */
export async function prepareDataset(objects: number, folder: string): Promise<Dataset> {
  const known = new Set<string>()
  const base = { objects, closure: 'root-less' } as const
  const first = await prepareVersion('first version', base, known, join(folder, 'first'))
  const second = await prepareVersion(
    '1 in 20 changed',
    { ...base, revision: 1, changed: SECOND_CHANGED },
    known,
    join(folder, 'second'),
  )
  const arrayFile = join(folder, 'first.json')
  await pipeline(arrayText(base), createWriteStream(arrayFile))
  const gzipFile = join(folder, 'first.json.gz')
  await pipeline(gzippedBatches(base), createWriteStream(gzipFile))
  return { first, second, arrayFile, gzipFile }
}

async function prepareVersion(
  name: string,
  options: BuildingOptions,
  known: Set<string>,
  uploads: string,
): Promise<Version> {
  await mkdir(uploads)
  const counts = { rootId: '', objects: 0, jsonBytes: 0, textBytes: 0, uploadedJsonBytes: 0, uploadedGzipBytes: 0 }
  for (const batch of inBatches(newObjects(building(options), known, counts), MB)) {
    const json = jsonArray(batch)
    const path = join(uploads, `${String(counts.uploadedJsonBytes).padStart(12, '0')}.json.gz`)
    await writeFile(path, await compress(json))
    counts.uploadedJsonBytes += Buffer.byteLength(json)
    counts.uploadedGzipBytes += (await stat(path)).size
  }
  return { name, uploads, ...counts }
}

/** Counts all objects and passes on those that are not known yet. */
function* newObjects(
  model: Iterable<readonly ModelObject[]>,
  known: Set<string>,
  counts: { rootId: string; objects: number; jsonBytes: number; textBytes: number },
): Generator<readonly ModelObject[], void, undefined> {
  for (const batch of model) {
    for (const { id, json } of batch) {
      const bytes = Buffer.byteLength(json)
      counts.rootId = id
      counts.objects += 1
      counts.jsonBytes += bytes
      counts.textBytes += bytes + id.length + 2
    }
    yield batch.filter(({ id }) => !known.has(id))
    for (const { id } of batch) known.add(id)
  }
}

function* arrayText(options: BuildingOptions): Generator<string, void, undefined> {
  let separator = '['
  for (const batch of building(options)) {
    yield separator + batch.map(({ json }) => json).join(',')
    separator = ','
  }
  yield ']'
}

async function* gzippedBatches(options: BuildingOptions): AsyncGenerator<Uint8Array, void, undefined> {
  for (const batch of inBatches(building(options), MB)) yield await compress(jsonArray(batch))
}
