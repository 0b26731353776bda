import { createHash, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { blockBody, platformCompressor } from '../src/client/upload/block-body.ts'
import type { ModelObject } from './model/building.ts'

export interface Target {
  /** The address of the service, with its prefix and without a slash at the end. */
  readonly url: string
  readonly token: string
  readonly projectId: string
}

export interface UploadOptions {
  /** Requests at a time. */
  readonly concurrency?: number
  /** JSON in one request, about. */
  readonly batchBytes?: number
  /** Ask first which objects the server holds, and leave them out. */
  readonly skipHeld?: boolean
}

export interface UploadReport {
  readonly rootId: string
  readonly objects: number
  readonly sentObjects: number
  readonly requests: number
  readonly jsonBytes: number
  readonly gzipBytes: number
}

const COMPRESSION_LEVEL = 6
const compress = promisify(gzip)

/**
 * Sends a model as real clients do: batches of about 1 MB of JSON, each one gzipped file part of a multipart request,
 * four at a time.
 */
export async function uploadModel(
  target: Target,
  model: Iterable<readonly ModelObject[]>,
  options: UploadOptions = {},
): Promise<UploadReport> {
  const { concurrency = 4, batchBytes = 1_048_576, skipHeld = false } = options
  const report = { rootId: '', objects: 0, sentObjects: 0, requests: 0, jsonBytes: 0, gzipBytes: 0 }
  const batches = inBatches(model, batchBytes)
  const sendOne = async (): Promise<void> => {
    for (let next = batches.next(); !next.done; next = batches.next()) {
      report.objects += next.value.length
      report.rootId = next.value[next.value.length - 1].id
      const wanted = skipHeld ? await leaveOutHeld(target, next.value) : next.value
      if (wanted.length === 0) continue
      const json = jsonArray(wanted)
      const body = await compress(json, { level: COMPRESSION_LEVEL })
      await postBatch(target, body)
      report.sentObjects += wanted.length
      report.requests += 1
      report.jsonBytes += Buffer.byteLength(json)
      report.gzipBytes += body.length
    }
  }
  await Promise.all(Array.from({ length: concurrency }, sendOne))
  return report
}

/**
 * Uploads a root that was never requested, over the children of this one, and returns its id. Beside it comes an object
 * that nothing refers to: no plan is made in advance for an upload with two roots.
 */
export async function uploadAnotherRoot(target: Target, rootId: string): Promise<string> {
  const answer = await fetch(`${target.url}/objects/${target.projectId}/${rootId}/single`, {
    headers: authorization(target),
  })
  const { id: _, ...fields } = JSON.parse(await answered(answer)) as Record<string, unknown>
  const name = randomBytes(8).toString('hex')
  const [root, note] = [
    { ...fields, anotherRoot: name },
    { speckle_type: 'Objects.Other.Note', value: name },
  ].map(withId)
  await postBatch(target, await compress(jsonArray([root, note])))
  return root.id
}

/** The object with an id that is made of its text. */
function withId(fields: object): ModelObject {
  const text = JSON.stringify(fields)
  const id = createHash('sha256').update(text).digest('hex').slice(0, 32)
  return { id, json: `{"id":"${id}",${text.slice(1)}` }
}

/** One upload request with one gzipped file part. Throws unless the answer is 200. */
export async function postBatch(target: Target, gzipped: Uint8Array<ArrayBuffer>): Promise<void> {
  const form = new FormData()
  form.append('file', new Blob([gzipped], { type: 'application/gzip' }), 'batch.json.gz')
  const response = await fetch(`${target.url}/objects/${target.projectId}`, {
    method: 'POST',
    headers: authorization(target),
    body: form,
  })
  await answered(response)
}

/** The objects as ready blocks, made as the client makes them. */
export async function readyBlocks(objects: readonly ModelObject[]): Promise<Uint8Array<ArrayBuffer>> {
  const compressor = platformCompressor()
  const made = compressor === undefined ? undefined : await blockBody(objects, compressor, 0)
  if (made === undefined) throw new Error('ready blocks need zlib, and texts as the server keeps them')
  return new Uint8Array(await made.body.arrayBuffer())
}

export function jsonArray(objects: readonly ModelObject[]): string {
  return `[${objects.map((object) => object.json).join(',')}]`
}

/** Objects regrouped so that each batch holds about `batchBytes` of JSON, and one object at least. */
export function* inBatches(
  model: Iterable<readonly ModelObject[]>,
  batchBytes: number,
): Generator<readonly ModelObject[], void, undefined> {
  let batch: ModelObject[] = []
  let bytes = 0
  for (const objects of model) {
    for (const object of objects) {
      if (bytes + object.json.length > batchBytes && batch.length > 0) {
        yield batch
        batch = []
        bytes = 0
      }
      batch.push(object)
      bytes += object.json.length
    }
  }
  if (batch.length > 0) yield batch
}

async function leaveOutHeld(target: Target, objects: readonly ModelObject[]): Promise<readonly ModelObject[]> {
  const response = await fetch(`${target.url}/api/diff/${target.projectId}`, {
    method: 'POST',
    headers: { ...authorization(target), 'Content-Type': 'application/json' },
    body: JSON.stringify({ objects: JSON.stringify(objects.map((object) => object.id)) }),
  })
  const held = JSON.parse(await answered(response)) as Record<string, boolean>
  return objects.filter((object) => !held[object.id])
}

async function answered(response: Response): Promise<string> {
  const text = await response.text()
  if (!response.ok)
    throw new Error(`${new URL(response.url).pathname} answered ${response.status}: ${text.slice(0, 500)}`)
  return text
}

function authorization(target: Target): Record<string, string> {
  return { Authorization: `Bearer ${target.token}` }
}
