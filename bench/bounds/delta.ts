import { join } from 'node:path'
import { download } from '../download.ts'
import { repeat } from '../measure.ts'
import { building } from '../model/building.ts'
import { issueToken } from '../server.ts'
import { uploadModel } from '../upload.ts'
import { type Bound, printFigure } from './bound.ts'
import { changedBlocks, inflatingSeconds, replacedIds } from './changed-blocks.ts'
import { secondsDuring } from './processor-time.ts'
import { whileServing } from './serving.ts'

const OBJECTS = 100_000
const CHANGED = 0.05

/**
 * The processor time of the first delta between two versions after a start of the server, and of what no delta can do
 * without: to inflate the texts of all changed objects, to read the older ones, here as one list of them, and to find
 * out what differs, as in an answer without deltas.
 */
export const delta: Bound = async ({ profile, objects = OBJECTS, rounds, folder }) => {
  const data = join(folder, 'data')
  const versions = [{}, { revision: 1, changed: CHANGED }].map((change) => ({ objects, profile, ...change }))
  const { token, older, newer } = await whileServing(data, async ({ url }) => {
    const target = { url, token: await issueToken(data, '*'), projectId: 'delta' }
    const first = await uploadModel(target, building(versions[0]))
    const second = await uploadModel(target, building(versions[1]), { skipHeld: true })
    return { token: target.token, older: first.rootId, newer: second.rootId }
  })
  const list = JSON.stringify({ objects: JSON.stringify(replacedIds(versions)) })
  const headers = { Authorization: `Bearer ${token}`, Accept: 'text/plain', 'Accept-Encoding': 'gzip' }
  /** Each in a process that has sent other objects of the model before. */
  const fresh = (work: (url: string) => Promise<unknown>): Promise<number> =>
    whileServing(data, async ({ url, pid }) => {
      await download(`${url}/objects/delta/${older}`, headers)
      const { main, others } = await secondsDuring(pid, () => work(url))
      return main + others
    })
  const changed = changedBlocks(versions)
  const times = await repeat(rounds, async () => {
    const digest = await whileServing(data, ({ url }) => digestOf(`${url}/objects/delta/${older}`, headers))
    const since = `/objects/delta/${newer}?have=${older}@${digest}`
    return {
      delta: await fresh((url) => download(`${url}${since}&delta`, headers)),
      whole: await fresh((url) => download(`${url}${since}`, headers)),
      zlib: inflatingSeconds(changed),
      olderTexts: await fresh((url) => postList(`${url}/api/getobjects/delta`, headers, list)),
    }
  })
  console.log(`delta of 1 object in ${1 / CHANGED}: ${profile}, ${objects} objects, median (min to max) of ${rounds}`)
  printFigure(
    'the delta',
    's',
    times.map((round) => round.delta),
  )
  printFigure(
    'the changed objects, whole',
    's',
    times.map(({ whole }) => whole),
  )
  printFigure(
    'the older texts of these objects, as a list',
    's',
    times.map(({ olderTexts }) => olderTexts),
  )
  printFigure(
    'to inflate the older and the newer texts, and nothing else',
    's',
    times.map(({ zlib }) => zlib),
  )
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
