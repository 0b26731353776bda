import { type Environment, REAL_ENVIRONMENT } from '../environment.ts'
import type { BlobStore, RecordStore } from './backend.ts'

/** Names of blobs that begin so mark which cluster a place for blobs belongs to. */
export const CLUSTER_FOLDER = 'cluster/'

/** No kind of record has this name, and none begins with it. */
const CLUSTER_KEY: Uint8Array = Buffer.from('cluster\0')
const MARK = /^(pending|whole) ([0-9a-f]{32})$/

type Randomness = Pick<Environment, 'randomBytes'>

interface Halves {
  readonly records: RecordStore
  readonly blobs: BlobStore
}

/** What the records say: `pending` until the blob of the id is certain to be there. */
interface Mark {
  readonly state: 'pending' | 'whole'
  readonly id: string
}

/**
 * Makes sure that records and blobs belong together: one random id stands in both. New halves receive it in three
 * steps: the records note the id as pending, the blob of the id is put, the records call it whole. Every step can be
 * repeated, also by several servers at once. Rejects if the blobs bear the id of other records, or lack that of these.
 */
export async function pairHalves(halves: Halves, environment: Randomness = REAL_ENVIRONMENT): Promise<void> {
  const { records, blobs } = halves
  const mark = await markOf(halves, environment)
  const ids = await idsOfBlobs(blobs)
  refuseOthers(halves, mark.id, ids)
  if (mark.state === 'whole') {
    if (!ids.includes(mark.id)) throw missingBlob(halves, mark.id)
    return
  }
  if (!ids.includes(mark.id)) await putMark(blobs, mark.id)
  // Of two clusters that begin on the same blobs at once, at least one sees the other here.
  refuseOthers(halves, mark.id, await idsOfBlobs(blobs))
  const whole = { ...mark, state: 'whole' } as const
  const { ok } = await records.commit({
    put: [{ key: CLUSTER_KEY, value: encoded(whole) }],
    expect: [{ key: CLUSTER_KEY, value: encoded(mark) }],
  })
  if (ok) return
  const now = await markOf(halves, environment)
  if (now.id !== mark.id || now.state !== 'whole')
    throw new Error(`the id of the cluster in ${placeOf('records', halves)} changed while it was written; try again`)
}

/**
 * The same for records that are made anew: records without an id, or whose id no blob bears, take the id of the blobs.
 * Resolves to whether they did. Rejects where the blobs bear several ids, and where the records are whole with another
 * one.
 */
export async function adoptBlobs(halves: Halves, environment: Randomness = REAL_ENVIRONMENT): Promise<boolean> {
  const { records, blobs } = halves
  const [id, ...others] = await idsOfBlobs(blobs)
  const [held] = await records.getMany([CLUSTER_KEY])
  const mark = parsed(held)
  if (id !== undefined && others.length === 0 && mark?.state !== 'whole' && mark?.id !== id) {
    const value = encoded({ state: 'whole', id })
    const { ok } = await records.commit({
      put: [{ key: CLUSTER_KEY, value }],
      expect: [{ key: CLUSTER_KEY, value: held }],
    })
    if (ok) return true
  }
  await pairHalves(halves, environment)
  return false
}

async function markOf(halves: Halves, environment: Randomness): Promise<Mark> {
  const { records } = halves
  const [held] = await records.getMany([CLUSTER_KEY])
  if (held) return decoded(halves, held)
  const fresh: Mark = { state: 'pending', id: Buffer.from(environment.randomBytes(16)).toString('hex') }
  const [found] = await records.insertMany([{ key: CLUSTER_KEY, value: encoded(fresh) }])
  return found ? decoded(halves, found) : fresh
}

function encoded({ state, id }: Mark): Uint8Array {
  return Buffer.from(`${state} ${id}`)
}

function decoded(halves: Halves, value: Uint8Array): Mark {
  const mark = parsed(value)
  if (mark === undefined)
    throw new Error(
      `the record of the cluster's id in ${placeOf('records', halves)} is damaged; "stowage reindex" takes it from the blobs`,
    )
  return mark
}

function parsed(value: Uint8Array | undefined): Mark | undefined {
  const [, state, id] = (value && MARK.exec(Buffer.from(value).toString('latin1'))) ?? []
  return id === undefined ? undefined : { state: state as Mark['state'], id }
}

async function idsOfBlobs(blobs: BlobStore): Promise<readonly string[]> {
  const ids: string[] = []
  for await (const batch of blobs.list(CLUSTER_FOLDER))
    for (const { name } of batch) ids.push(name.slice(CLUSTER_FOLDER.length))
  return ids
}

async function putMark(blobs: BlobStore, id: string): Promise<void> {
  const content = async function* (): AsyncGenerator<Uint8Array> {
    yield Buffer.from(`${id}\n`)
  }
  try {
    await blobs.put(CLUSTER_FOLDER + id, content())
  } catch (error) {
    // Another server of this cluster was faster, or the answer to an earlier try was lost.
    if (!(error instanceof Error) || error.name !== 'BlobExistsError') throw error
  }
}

function refuseOthers(halves: Halves, id: string, ids: readonly string[]): void {
  const other = ids.find((found) => found !== id)
  if (other === undefined) return
  throw new Error(
    `${placeOf('records', halves)} and ${placeOf('blobs', halves)} do not belong together: the records have the id ` +
      `${id}, the blobs that of other records (blob ${CLUSTER_FOLDER}${other}). Name the two places that belong ` +
      'together; nothing was overwritten',
  )
}

function missingBlob(halves: Halves, id: string): Error {
  return new Error(
    `${placeOf('records', halves)} and ${placeOf('blobs', halves)} do not belong together: the records have the id ` +
      `${id}, and the blobs lack the blob ${CLUSTER_FOLDER}${id}. Name the place where the blobs of these records are ` +
      '(is its disk mounted?), or restore them from a backup; nothing was changed',
  )
}

export function placeOf(half: 'records' | 'blobs', halves: Halves): string {
  const { place } = halves[half]
  return place === undefined ? `the ${half}` : `the ${half} in ${place}`
}
