import { randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Random } from '../../bench/model/random.ts'

/** `whole`: sent to its end. `cut`: the client goes away in the middle of the body. `invalid`: sent to its end, but must be refused. */
export type Fate = 'whole' | 'cut' | 'invalid'

export interface Upload {
  readonly projectId: string
  readonly rootId: string
  readonly fate: Fate
  /** Texts by id, all below the root. */
  readonly texts: ReadonlyMap<string, string>
  /** Ids that no other upload has. */
  readonly ownIds: readonly string[]
  /** Multipart, with one gzipped file part. */
  readonly body: Buffer
}

export const BOUNDARY = 'crash-round'
export const PROJECTS: readonly string[] = ['north', 'south']

interface Size {
  readonly weight: number
  readonly objects: readonly [number, number]
  readonly textBytes: readonly [number, number]
}

/**
 * Packs inside their records, packs about as large as those may be, packs of their own, several megabytes, and closures
 * whose plans are stored.
 */
const SIZES: readonly Size[] = [
  { weight: 8, objects: [1, 20], textBytes: [20, 500] },
  { weight: 3, objects: [30, 60], textBytes: [800, 1_400] },
  { weight: 5, objects: [50, 300], textBytes: [500, 4_000] },
  { weight: 1, objects: [200, 400], textBytes: [4_000, 12_000] },
  { weight: 1, objects: [1_100, 1_600], textBytes: [20, 200] },
]

const SHARED_IDS = 60
const RIVAL_IDS = 20
const TEXT_POOL: string = randomBytes(786_432).toString('base64')
const compress = promisify(gzip)

/**
 * An upload whose ids carry `name`, which must be given once only; it shares some ids with others, and some of these
 * have another text in each.
 */
export async function makeUpload(random: Random, name: string): Promise<Upload> {
  const size = pickSize(random)
  const texts = new Map<string, string>()
  const ownIds: string[] = []
  for (let left = between(random, size.objects); left > 0; left--) {
    const id = `${name}-${left}`
    ownIds.push(id)
    texts.set(id, JSON.stringify({ id, data: someText(random, between(random, size.textBytes)) }))
  }
  for (let shared = random.below(4); shared > 0; shared--) {
    const id = `shared-${random.below(SHARED_IDS)}`
    texts.set(id, JSON.stringify({ id, data: id.repeat(8) }))
  }
  if (random.oneIn(2)) {
    const id = `rival-${random.below(RIVAL_IDS)}`
    texts.set(id, JSON.stringify({ id, writtenBy: name }))
  }
  const rootId = `${name}-root`
  ownIds.push(rootId)
  texts.set(
    rootId,
    JSON.stringify({
      id: rootId,
      parts: [...texts.keys()].map((referencedId) => ({ speckle_type: 'reference', referencedId })),
    }),
  )
  const fate = random.oneIn(8) ? 'cut' : random.oneIn(8) ? 'invalid' : 'whole'
  return {
    projectId: random.pick(PROJECTS),
    rootId,
    fate,
    texts,
    ownIds,
    body: await makeBody(random, [...texts.values()], fate),
  }
}

function pickSize(random: Random): Size {
  let at = random.below(SIZES.reduce((sum, { weight }) => sum + weight, 0))
  return SIZES.find(({ weight }) => (at -= weight) < 0) ?? SIZES[0]
}

function between(random: Random, [least, most]: readonly [number, number]): number {
  return least + random.below(most - least + 1)
}

function someText(random: Random, bytes: number): string {
  const from = random.below(TEXT_POOL.length - bytes)
  return TEXT_POOL.slice(from, from + bytes)
}

async function makeBody(random: Random, texts: readonly string[], fate: Fate): Promise<Buffer> {
  const isBadJson = fate === 'invalid' && random.oneIn(2)
  const zipped = await compress(`[${texts.join(',')}${isBadJson ? ',{"id":' : ']'}`, { level: 1 })
  // The length of the content at the very end of a gzip file: everything before it has been read when it turns out to
  // be wrong.
  if (fate === 'invalid' && !isBadJson) zipped[zipped.length - 1] ^= 0x40
  return Buffer.concat([
    Buffer.from(
      `--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="batch.json.gz"\r\nContent-Type: application/gzip\r\n\r\n`,
    ),
    zipped,
    Buffer.from(`\r\n--${BOUNDARY}--\r\n`),
  ])
}
