import { startBalancer } from '../../test/engines/cluster.ts'
import type { Ending } from '../../test/support/folder.ts'
import { stowage } from '../../test/cli/command.ts'
import { MB, repeat, round, type Row, sample } from '../measure.ts'
import { building } from '../model/building.ts'
import { type Target, uploadModel } from '../upload.ts'
import { type Cost, costOf, fetchModel, type Model, plan, sendModel } from './model.ts'
import { type MeasuredServer, NO_CACHE, type RatesStorage } from './place.ts'

/** What each part needs. */
export interface Setting {
  readonly ending: Ending
  readonly storage: RatesStorage
  readonly files: MeasuredServer
  /** Over PostgreSQL and S3, without a cache. */
  readonly plain: MeasuredServer
  readonly model: Model
  readonly rounds: number
}

const UPLOAD_RATIO_MIN = 0.7
const WARM_RATIO_MIN = 0.5
const COLD_RATIO_MIN = 0.2
const SLOW_JSON_MB_MIN = 100
const LATENCY_MS = { postgres: 1, s3: 20 } as const
const GETS_MAX = 150
const GETS_OBJECTS_MIN = 1_000_000
/** The targets are those of a model of this size. */
const OBJECTS_MIN = 150_000
const CLIENTS = 6
/** The model again, each time in blobs of its own: from the second round of uploads on. */
const OTHER_PROJECTS = ['again-1', 'again-2']
const UPLOAD_ROUNDS_MIN = 1 + OTHER_PROJECTS.length

/** The same model to both storages, each time into a new project. */
export async function uploads({ files, plain, model, rounds }: Setting): Promise<readonly Row[]> {
  const send = (server: MeasuredServer, project: string): Promise<Cost> =>
    costOf([server.pid], () => sendModel({ ...server.target, projectId: project }, model))
  const pairs = await repeat(Math.max(rounds, UPLOAD_ROUNDS_MIN), async (turn) => {
    const project = turn === 0 ? 'model' : `again-${turn}`
    return [await send(files, project), await send(plain, project)] as const
  })
  return ratioRows('upload', model, pairs, [['PostgreSQL and S3', UPLOAD_RATIO_MIN]])
}

/**
 * With a warm cache, a cold one, and none; the model is there, from `uploads`. Where the cache is cold, its server has
 * served other models before, so that its code is as fast as that of the server over files; or nothing yet.
 */
export async function downloads({ storage, files, plain, model, rounds }: Setting): Promise<readonly Row[]> {
  const warm = await storage.server([])
  const serveOthers = async ({ target }: MeasuredServer): Promise<void> => {
    for (const projectId of OTHER_PROJECTS) await plan({ ...target, projectId }, model.rootId)
  }
  await serveOthers(plain)
  for (const { target } of [files, plain, warm]) await plan(target, model.rootId)
  const fetchFrom = (server: MeasuredServer): Promise<Cost> =>
    costOf([server.pid], () => fetchModel(server.target, model.rootId))
  const turns = await repeat(rounds, async () => {
    const [cold, fresh] = [await storage.server([]), await storage.server([])]
    await serveOthers(cold)
    await openStorage(fresh.target)
    const costs: Cost[] = []
    for (const server of [files, warm, cold, fresh, plain]) costs.push(await fetchFrom(server))
    await Promise.all([cold, fresh].map((server) => server.stop()))
    return costs
  })
  await warm.stop()
  const gets = await countedGets(storage, plain.target.projectId, model.rootId)
  return [
    ...ratioRows('planned download', model, turns, [
      ['PostgreSQL and S3, warm cache', WARM_RATIO_MIN],
      ['PostgreSQL and S3, cold cache', COLD_RATIO_MIN],
      ['PostgreSQL and S3, cold cache, first download of the process', undefined],
      ['PostgreSQL and S3, no cache', COLD_RATIO_MIN],
    ]),
    { what: `GETs of it, no cache, from ${model.bodies.length} uploads`, value: String(gets) },
  ]
}

/** Without a cache. */
export async function slowNetwork({ storage, model, rounds }: Setting): Promise<readonly Row[]> {
  const server = await storage.server(NO_CACHE, await storage.slow(LATENCY_MS))
  await plan(server.target, model.rootId)
  const costs = await repeat(rounds, () => costOf([server.pid], () => fetchModel(server.target, model.rootId)))
  await server.stop()
  const { median } = sample(costs.map(({ seconds }) => model.jsonBytes / MB / seconds))
  return [
    {
      what: `planned download, no cache, ${LATENCY_MS.s3} ms more to S3 and ${LATENCY_MS.postgres} ms to PostgreSQL`,
      value: `${described(costs)}: ${round(median)} MB of JSON/s`,
      target: `>= ${SLOW_JSON_MB_MIN} MB/s`,
      ...verdict(median >= SLOW_JSON_MB_MIN, model.objects >= OBJECTS_MIN),
    },
  ]
}

/** Of a model that is as large as the target says, or it is no proof. */
export async function gets({ storage, plain }: Setting, objects: number): Promise<readonly Row[]> {
  const target = { ...plain.target, projectId: 'large' }
  const { rootId, objects: sent, jsonBytes } = await uploadModel(target, building({ objects, closure: 'root-less' }))
  const env = { STOWAGE_URL: target.url, STOWAGE_TOKEN: target.token, STOWAGE_PROJECT: target.projectId }
  for (const command of [
    ['pin', 'add', rootId, '--quiet'],
    ['compact', '--all', '--quiet'],
  ]) {
    const { code, stderr } = await stowage(command, env)
    if (code !== 0) throw new Error(stderr)
  }
  await plan(target, rootId)
  const counted = await countedGets(storage, 'large', rootId)
  return [
    {
      what: `GETs of a planned download of ${sent} objects, compacted, no cache`,
      value: `${counted} for ${round(jsonBytes / MB)} MB of JSON`,
      target: `< ${GETS_MAX} for ${GETS_OBJECTS_MIN} objects`,
      ...verdict(counted < GETS_MAX, sent >= GETS_OBJECTS_MIN),
    },
  ]
}

/** The GETs of one download by a server that has loaded the plan. */
async function countedGets(storage: RatesStorage, projectId: string, rootId: string): Promise<number> {
  const { counted, ...place } = await storage.counting()
  const server = await storage.server(NO_CACHE, place)
  const target = { ...server.target, projectId }
  await plan(target, rootId)
  counted.gets = 0
  await fetchModel(target, rootId)
  await server.stop()
  return counted.gets
}

/** Clients that work at the same time, through nginx: with one server behind it, and with three. */
export async function oneThenThree({ ending, storage, model, rounds }: Setting): Promise<readonly Row[]> {
  const servers = await repeat(3, () => storage.server([]))
  for (const { target } of servers) await plan(target, model.rootId)
  const one = servers.map(() => servers[0])
  const fronts = await Promise.all([one, servers].map((behind) => startBalancer(ending, { servers: behind })))
  const costs = fronts.map(() => ({ download: [] as Cost[], upload: [] as Cost[] }))
  const pids = servers.map(({ pid }) => pid)
  for (let turn = 0; turn < rounds; turn++)
    for (const [at, url] of fronts.entries()) {
      const target = (client: number): Target => ({ url, token: storage.token, projectId: `${at}-${turn}-${client}` })
      const all = (use: (client: number) => Promise<unknown>): Promise<unknown> =>
        Promise.all(Array.from({ length: CLIENTS }, (_, client) => use(client)))
      const down = () => all(() => fetchModel({ ...target(0), projectId: 'model' }, model.rootId))
      costs[at].download.push(await costOf(pids, down))
      const some = { ...model, bodies: model.bodies.slice(0, Math.ceil(model.bodies.length / CLIENTS)) }
      costs[at].upload.push(await costOf(pids, () => all((client) => sendModel(target(client), some))))
    }
  for (const server of servers) await server.stop()
  const jsonBytes = { download: model.jsonBytes * CLIENTS, upload: model.jsonBytes }
  return (['download', 'upload'] as const).flatMap((kind) =>
    costs.map((cost, at) => ({
      what: `${CLIENTS} clients ${kind}, ${at === 0 ? 'one server' : 'three servers'} behind nginx`,
      value: `${round(jsonBytes[kind] / MB / sample(cost[kind].map(({ seconds }) => seconds)).median)} MB of JSON/s; ${described(cost[kind])}`,
    })),
  )
}

/** Nothing is proved with a model that is smaller than the target's. */
function verdict(met: boolean, isWhole: boolean): Pick<Row, 'met'> {
  return isWhole ? { met } : {}
}

/** The first request opens what a server opens once. */
async function openStorage({ url, token, projectId }: Target): Promise<void> {
  await (
    await fetch(`${url}/objects/${projectId}/absent/single`, { headers: { Authorization: `Bearer ${token}` } })
  ).text()
}

/** The first of each turn is files. A ratio is that of neighbours in time. */
function ratioRows(
  what: string,
  { jsonBytes, objects }: Model,
  turns: readonly (readonly Cost[])[],
  others: readonly (readonly [name: string, ratioMin: number | undefined])[],
): readonly Row[] {
  const files = turns.map(([cost]) => cost)
  const rate = (costs: readonly Cost[]): string =>
    `${round(jsonBytes / MB / sample(costs.map(({ seconds }) => seconds)).median)} MB of JSON/s; ${described(costs)}`
  return [
    { what: `${what}, files`, value: rate(files) },
    ...others.map(([name, ratioMin], at): Row => {
      const { median, min, max } = sample(turns.map((turn) => turn[0].seconds / turn[at + 1].seconds))
      return {
        what: `${what}, ${name}`,
        value: rate(turns.map((turn) => turn[at + 1])),
        reference: `${round(median)} (${round(min)} to ${round(max)}) of files`,
        ...(ratioMin === undefined
          ? {}
          : { target: `>= ${ratioMin}`, ...verdict(median >= ratioMin, objects >= OBJECTS_MIN) }),
      }
    }),
  ]
}

function described(costs: readonly Cost[]): string {
  const [seconds, cpu] = (['seconds', 'cpuSeconds'] as const).map((key) => sample(costs.map((cost) => cost[key])))
  return `${round(seconds.median)} s (${round(seconds.min)} to ${round(seconds.max)}), ${round(cpu.median)} s of processor time of servers`
}
