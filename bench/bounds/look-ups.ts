import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { closeDatabase, type OpenDatabase, openRecordsDatabase } from '../../adapters/level/database.ts'
import { encodeObjectRecord } from '../../src/store/records/object-record.ts'
import { objectKeyMaker } from '../../src/store/records/keys.ts'
import { idOf, mixed } from '../id-index/synthetic-ids.ts'
import { repeat } from '../measure.ts'
import { building } from '../model/building.ts'
import { createRandom } from '../model/random.ts'
import { issueToken } from '../server.ts'
import type { RunningServer } from '../server-process.ts'
import { uploadModel } from '../upload.ts'
import { type Bound, printFigure } from './bound.ts'
import { secondsDuring, secondsSince } from './processor-time.ts'
import { whileServing } from './serving.ts'

const FEW_OBJECTS = 10_000
const OBJECTS = 1_000_000
const IDS = 1_000
const REQUESTS = 100
/** What an upload of 1 MB writes at a time. */
const RECORDS_AT_ONCE = 400
/** Until LevelDB has merged what was written. */
const SETTLING_MS = 5_000

/**
 * The processor time of a diff of 1,000 ids, half of them held, in a small project, and of the same look-ups in LevelDB
 * alone, with as many objects and with many. What LevelDB alone needs more beside many objects, no diff can save.
 */
export const lookUps: Bound = async ({ profile, objects = OBJECTS, rounds, folder }) => {
  const few = await filledDatabase(join(folder, 'few'), FEW_OBJECTS)
  const many = await filledDatabase(join(folder, 'many'), objects)
  await delay(SETTLING_MS)
  const data = join(folder, 'data')
  const times = await whileServing(data, async (server) => {
    const diff = await diffOf(server, data, profile)
    await diff()
    return await repeat(rounds, async (round) => ({
      server: await diff(),
      few: await secondsForEach(few, FEW_OBJECTS, round),
      many: await secondsForEach(many, objects, round),
    }))
  })
  for (const database of [few, many]) await closeDatabase(database)
  console.log(`diff of ${IDS} ids, half of them held: median (min to max) of ${rounds}`)
  const figure = (what: string, unit: string, of: (round: (typeof times)[0]) => number): void =>
    printFigure(what, unit, times.map(of))
  figure(`the server, ${FEW_OBJECTS} objects`, 'µs for each id', ({ server }) => server * 1e6)
  figure(`LevelDB alone, ${FEW_OBJECTS} objects`, 'µs for each id', ({ few }) => few * 1e6)
  figure(`LevelDB alone, ${objects} objects`, 'µs for each id', ({ many }) => many * 1e6)
  figure(
    `the server, ${objects} objects, at least`,
    `of ${FEW_OBJECTS} objects`,
    ({ server, few, many }) => (server + many - few) / server,
  )
}

/** The records of so many objects, as the store writes them. */
async function filledDatabase(path: string, objects: number): Promise<OpenDatabase> {
  mkdirSync(path)
  const open = await openRecordsDatabase(path, { createIfMissing: true })
  const keyOf = objectKeyMaker('look-ups', 1)
  for (let first = 0; first < objects; first += RECORDS_AT_ONCE) {
    const entries = Array.from({ length: Math.min(RECORDS_AT_ONCE, objects - first) }, (_, ordinal) => {
      const key = keyOf(idOf(first + ordinal))
      return { type: 'put', key, value: recordOf(key, first, ordinal) } as const
    })
    await open.database.batch(entries)
  }
  return open
}

function recordOf(key: Uint8Array, sequence: number, ordinal: number): Uint8Array {
  return encodeObjectRecord(key, {
    state: 'live',
    epoch: 1,
    sequence,
    ordinal,
    blockStart: ordinal,
    blockStoredBytes: 6_000,
    blockRawBytes: 16_384,
    lineStart: ordinal,
    textBytes: 2_300,
    textCrc32: mixed(ordinal),
  })
}

/** The time for each id of look-ups of 1,000 keys, of which every other one is held. */
async function secondsForEach({ reader }: OpenDatabase, objects: number, seed: number): Promise<number> {
  const random = createRandom(seed + 1)
  const keyOf = objectKeyMaker('look-ups', 1)
  const lists = Array.from({ length: REQUESTS }, () =>
    Array.from({ length: IDS }, (_, at) => keyOf(idOf(random.below(objects) + (at % 2) * objects))),
  )
  const started = process.cpuUsage()
  for (const keys of lists) await reader.getMany(keys)
  return secondsSince(started) / (REQUESTS * IDS)
}

/** Requests to a server with few objects; each call makes many, and returns the time for each id. */
async function diffOf(
  { url, pid }: RunningServer,
  data: string,
  profile: Parameters<Bound>[0]['profile'],
): Promise<() => Promise<number>> {
  const target = { url, token: await issueToken(data, '*'), projectId: 'look-ups' }
  const model = [...building({ objects: FEW_OBJECTS, profile, closure: 'root-less' })]
  const ids = model.flatMap((batch) => batch.map(({ id }) => id))
  await uploadModel(target, model)
  const random = createRandom(1)
  const bodies = Array.from({ length: REQUESTS }, () => {
    const asked = Array.from({ length: IDS }, (_, at) => {
      const id = random.pick(ids)
      return at % 2 === 0 ? id : Array.from(id).toReversed().join('')
    })
    return JSON.stringify({ objects: JSON.stringify(asked) })
  })
  const headers = { Authorization: `Bearer ${target.token}`, 'Content-Type': 'application/json' }
  return async () => {
    const { main, others } = await secondsDuring(pid, async () => {
      for (const body of bodies) {
        const answer = await fetch(`${url}/api/diff/look-ups`, { method: 'POST', headers, body })
        const text = await answer.text()
        if (answer.status !== 200) throw new Error(`a diff answered ${answer.status}: ${text.slice(0, 200)}`)
      }
    })
    return (main + others) / (REQUESTS * IDS)
  }
}
