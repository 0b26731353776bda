import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { type Download, download } from '../download.ts'
import { building } from '../model/building.ts'
import { cpuSeconds } from '../server.ts'
import { inBatches, jsonArray, postBatch, type Target } from '../upload.ts'

/** A model as the bodies that a client sends: they are made before anything is measured. */
export interface Model {
  readonly rootId: string
  readonly objects: number
  readonly jsonBytes: number
  readonly bodies: readonly Uint8Array<ArrayBuffer>[]
}

/** What something took: by the clock, and of the servers' processors. */
export interface Cost {
  readonly seconds: number
  readonly cpuSeconds: number
}

const UPLOADS_AT_ONCE = 4
const BATCH_BYTES = 1_048_576
const compress = promisify(gzip)

export async function makeModel(objects: number, seed: number = 1): Promise<Model> {
  const bodies: Uint8Array<ArrayBuffer>[] = []
  let [rootId, jsonBytes, count] = ['', 0, 0]
  for (const batch of inBatches(building({ objects, closure: 'root-less', seed }), BATCH_BYTES)) {
    const json = jsonArray(batch)
    bodies.push(new Uint8Array(await compress(json)))
    rootId = batch[batch.length - 1].id
    jsonBytes += Buffer.byteLength(json)
    count += batch.length
  }
  return { rootId, objects: count, jsonBytes, bodies }
}

/** Sends a model, some requests at a time. */
export async function sendModel(target: Target, { bodies }: Model): Promise<void> {
  const left = bodies.values()
  const send = async (): Promise<void> => {
    for (const body of left) await postBatch(target, body)
  }
  await Promise.all(Array.from({ length: UPLOADS_AT_ONCE }, send))
}

/** A whole model, as gzip of lines, by curl. */
export async function fetchModel({ url, token, projectId }: Target, rootId: string): Promise<Download> {
  const headers = { Authorization: `Bearer ${token}`, Accept: 'text/plain', 'Accept-Encoding': 'gzip' }
  return (await download(`${url}/objects/${projectId}/${rootId}`, headers))[0]
}

/** Downloads until the answers come from a plan, and once more. */
export async function plan(target: Target, rootId: string): Promise<void> {
  const deadline = performance.now() + 60_000
  for (let isPlanned = false; ; await fetchModel(target, rootId)) {
    if (isPlanned) return
    const answer = await fetch(`${target.url}/objects/${target.projectId}/${rootId}`, {
      headers: { Authorization: `Bearer ${target.token}`, Accept: 'text/plain' },
    })
    isPlanned = answer.headers.get('accept-ranges') === 'bytes'
    await answer.body?.cancel()
    if (performance.now() > deadline) throw new Error(`${target.url} made no plan of ${rootId}`)
  }
}

/** What `work` takes, and what the processes use meanwhile. */
export async function costOf(pids: readonly number[], work: () => Promise<unknown>): Promise<Cost> {
  const used = (): number => pids.reduce((sum, pid) => sum + cpuSeconds(pid), 0)
  const [atMs, before] = [performance.now(), used()]
  await work()
  return { seconds: (performance.now() - atMs) / 1_000, cpuSeconds: used() - before }
}
