import { join } from 'node:path'
import { download } from '../download.ts'
import { repeat } from '../measure.ts'
import { building } from '../model/building.ts'
import { issueToken } from '../server.ts'
import { uploadModel } from '../upload.ts'
import { type Bound, printFigure } from './bound.ts'
import { replacedIds, replacingObjects } from './changed-blocks.ts'
import { deltaParts } from './delta-parts.ts'
import { untilPlanned } from './planned.ts'
import { secondsDuring } from './processor-time.ts'
import { whileServing } from './serving.ts'

const OBJECTS = 100_000
const CHANGED = 0.05

/**
 * The processor time of the first delta between two versions after a start of the server, both of which have plans; of
 * reading the older texts of all changed objects, here as one list of them; and of what no delta can do without, which is
 * to read the blocks of all changed objects, to inflate their texts, and to compare them. Nothing has to be found for
 * these, and nothing is checked or sent.
 */
export const delta: Bound = async ({ profile, objects = OBJECTS, rounds, folder }) => {
  const data = join(folder, 'data')
  const model = { objects, profile, closure: 'root-less' as const }
  const versions = [{}, { revision: 1, changed: CHANGED }].map((change) => ({ ...model, ...change }))
  const { token, older, newer } = await whileServing(data, async ({ url }) => {
    const target = { url, token: await issueToken(data, '*'), projectId: 'delta' }
    const first = await uploadModel(target, building(versions[0]))
    const second = await uploadModel(target, replacingObjects(versions))
    for (const { rootId } of [first, second])
      await untilPlanned(`${url}/objects/delta/${rootId}`, headersOf(target.token))
    return { token: target.token, older: first.rootId, newer: second.rootId }
  })
  const list = JSON.stringify({ objects: JSON.stringify(replacedIds(versions)) })
  const headers = headersOf(token)
  /** Each in a process that has sent other objects of the model before. */
  const fresh = (work: (url: string) => Promise<unknown>): Promise<number> =>
    whileServing(data, async ({ url, pid }) => {
      await download(`${url}/objects/delta/${older}`, headers)
      const { main, others } = await secondsDuring(pid, () => work(url))
      return main + others
    })
  const times = await repeat(rounds, async () => {
    const digest = await whileServing(data, ({ url }) => digestOf(`${url}/objects/delta/${older}`, headers))
    const since = `/objects/delta/${newer}?have=${older}@${digest}`
    return {
      delta: await fresh((url) => download(`${url}${since}&delta`, headers)),
      parts: await deltaParts(versions, join(folder, 'blocks')),
      olderTexts: await fresh((url) => postList(`${url}/api/getobjects/delta`, headers, list)),
    }
  })
  console.log(`delta of 1 object in ${1 / CHANGED}: ${profile}, ${objects} objects, median (min to max) of ${rounds}`)
  const figure = (what: string, of: (round: (typeof times)[0]) => number): void => printFigure(what, 's', times.map(of))
  figure('the delta', (round) => round.delta)
  figure('the older texts of these objects, as a list', ({ olderTexts }) => olderTexts)
  figure('to read the blocks of the older and the newer texts, and nothing else', ({ parts }) => parts.readingSeconds)
  figure('to inflate these texts, and nothing else', ({ parts }) => parts.inflatingSeconds)
  figure('to compare them, and nothing else', ({ parts }) => parts.comparingSeconds)
  figure('to compare these blocks with their checksums', ({ parts }) => parts.checkingSeconds)
  figure('to compress the deltas, and nothing else', ({ parts }) => parts.compressingSeconds)
  figure('all five', ({ parts }) => Object.values(parts).reduce((sum, seconds) => sum + seconds, 0))
}

function headersOf(token: string): Readonly<Record<string, string>> {
  return { Authorization: `Bearer ${token}`, Accept: 'text/plain', 'Accept-Encoding': 'gzip' }
}

async function digestOf(url: string, headers: Readonly<Record<string, string>>): Promise<string> {
  const digest = (await fetch(url, { method: 'HEAD', headers })).headers.get('stowage-closure')
  if (digest === null) throw new Error('the answer has no digest of its closure')
  return digest
}

async function postList(url: string, headers: Readonly<Record<string, string>>, body: string): Promise<void> {
  const answer = await fetch(url, { method: 'POST', headers: { ...headers, 'Content-Type': 'application/json' }, body })
  if (!answer.ok) throw new Error(`a list was answered with ${answer.status}`)
  await answer.arrayBuffer()
}
