import { createWriteStream, existsSync, readFileSync } from 'node:fs'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { once } from 'node:events'
import { join } from 'node:path'
import { createRandom } from '../model/random.ts'
import { IdPrefixSet, readIds } from './ids.ts'
import { type ChangePlace, type ModelSource, sizeName } from './source.ts'
import { UploadWriter } from './upload-writer.ts'

/** One version of a model on disk, as the requests that upload it. */
export interface Version {
  readonly name: string
  readonly rootId: string
  readonly objects: number
  /** All its objects as JSON, and as lines `<id> TAB <json> LF`. */
  readonly jsonBytes: number
  readonly lineBytes: number
  /** Gzipped arrays of about 1 MB; of a later version only the objects that the first one lacks. */
  readonly uploadFiles: readonly string[]
  readonly uploadObjects: number
  readonly uploadJsonBytes: number
  readonly uploadGzipBytes: number
}

/** A file for a reference: a part of the model, large enough to be measured and no larger. */
export interface Sample {
  readonly file: string
  readonly jsonBytes: number
}

/** A model that the benchmark can upload, and what it knows of it. */
export interface Dataset {
  readonly name: string
  readonly profile: string
  readonly first: Version
  /** JSON for each byte of the gzipped uploads. */
  readonly compressionRatio: number
  /** A JSON array, and the same as a gzip file. */
  readonly arraySample: Sample
  readonly gzipSample: Sample
  /** The ids of the first version, in the order of the upload. */
  ids(): readonly string[]
  /** A version of which this share of the objects differs; made when it is first asked for. */
  later(changed: number, place?: ChangePlace): Promise<Version>
}

export const BATCH_BYTES = 1_000_000
const SAMPLE_BYTES_MAX = 64_000_000

/** Prepares a model in `folder`, or finds it there from an earlier run. */
export async function prepareDataset(source: ModelSource, parent: string): Promise<Dataset> {
  const name = source.name
  const folder = join(parent, name)
  const first = await prepared(join(folder, 'first'), async (to) => await writeVersion('first version', source, to))
  const path = (file: string): string => join(folder, 'first', file)
  const sampled = JSON.parse(readFileSync(path('samples.json'), 'utf8')) as { readonly jsonBytes: number }
  return {
    name,
    profile: source.profile,
    first,
    compressionRatio: first.uploadJsonBytes / first.uploadGzipBytes,
    arraySample: { file: path('sample.json'), jsonBytes: sampled.jsonBytes },
    gzipSample: { file: path('sample.json.gz'), jsonBytes: sampled.jsonBytes },
    ids: () => readIds(path('ids.txt')),
    later: async (changed, place = 'everywhere') =>
      await prepared(join(folder, `changed-${changed}-${place.replaceAll(' ', '-')}`), async (to) => {
        const known = new IdPrefixSet(first.objects)
        for (const id of readIds(path('ids.txt'))) known.add(id)
        return await writeVersion(
          `${Math.round(changed * 100)} in 100 changed${place === 'everywhere' ? '' : ` ${place}`}`,
          source.later(changed, place),
          to,
          known,
        )
      }),
  }
}

/** Ids of the model, in random order but the same in every run. */
export function randomIds(ids: readonly string[], count: number, seed: number): readonly string[] {
  const random = createRandom(seed, ids.length)
  return Array.from({ length: Math.min(count, ids.length) }, () => random.pick(ids))
}

/** What `make` wrote into the folder, which appears there whole or not at all. */
async function prepared(folder: string, make: (folder: string) => Promise<Version>): Promise<Version> {
  const meta = join(folder, 'version.json')
  if (!existsSync(meta)) {
    const unfinished = `${folder}.unfinished`
    await rm(unfinished, { recursive: true, force: true })
    await mkdir(unfinished, { recursive: true })
    const version = await make(unfinished)
    await writeFile(join(unfinished, 'version.json'), JSON.stringify(version))
    await rename(unfinished, folder)
  }
  const version = JSON.parse(readFileSync(meta, 'utf8')) as Version
  return { ...version, uploadFiles: version.uploadFiles.map((file) => join(folder, file)) }
}

/** Writes what `known` lacks, as uploads; memory is bounded by some batches. */
async function writeVersion(
  name: string,
  source: Pick<ModelSource, 'objects' | 'rootId'>,
  folder: string,
  known?: IdPrefixSet,
): Promise<Version> {
  const counts = { objects: 0, jsonBytes: 0, lineBytes: 0 }
  const uploads = new UploadWriter(folder, { batchBytes: BATCH_BYTES, sampleBytesMax: SAMPLE_BYTES_MAX })
  const ids = createWriteStream(join(folder, 'ids.txt'))
  let lastId = ''
  for await (const batch of source.objects()) {
    for (const { id, json } of batch) {
      const bytes = Buffer.byteLength(json)
      counts.objects += 1
      counts.jsonBytes += bytes
      counts.lineBytes += bytes + Buffer.byteLength(id) + 2
      lastId = id
      if (known === undefined || !known.has(id)) await uploads.add(json, bytes)
    }
    if (!ids.write(batch.map(({ id }) => `${id}\n`).join(''))) await once(ids, 'drain')
  }
  ids.end()
  await once(ids, 'close')
  if (counts.objects === 0) throw new Error(`${sizeName(0)}: the model has no objects`)
  return { name, rootId: source.rootId?.() ?? lastId, ...counts, ...(await uploads.end()) }
}
