import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { gunzipSync } from 'node:zlib'
import type { ModelObject } from './model/building.ts'
import { createRandom } from './model/random.ts'
import { orUsage } from './options.ts'
import { build, exitOnSignals, issueToken, startServer } from './server.ts'
import type { RunningServer } from './server-process.ts'
import { type Target, type UploadReport, uploadModel } from './upload.ts'
import { verifyDeltas } from './verify/deltas.ts'
import { type Ask, type SentModel, verifyDownloads } from './verify/downloads.ts'
import { laterVersion, sentModel, untilPlanned, verifyHave } from './verify/versions.ts'

/*
 * `npm run verify -- FILE ROOT [--storage KIND]`: a model of somebody's own, one JSON object a line with its id first, children before parents, gzipped or not.
 * Uploads it to a server as clients do, downloads it in every way there is, and compares the bytes; again after `kill -9`; and a later version
 * of it, whole and as what an older one lacks.
 */

const PROJECT = 'verified'
const CHANGED_ONE_IN = 20
/** For the version that arrives as deltas. */
const FEW_CHANGED_ONE_IN = 100

const USAGE = 'npm run verify -- FILE ROOT [--storage filesystem|level|memory] [--folder PATH]'
const { values: chosen, positionals } = orUsage(USAGE, () => {
  const read = parseArgs({
    allowPositionals: true,
    options: { storage: { type: 'string', default: 'filesystem' }, folder: { type: 'string', default: tmpdir() } },
  })
  if (read.positionals.length !== 2) throw new Error('a file and the id of its root are needed')
  return read
})
const [file, rootId] = positionals

exitOnSignals()
const scratch = mkdtempSync(join(chosen.folder, 'stowage-verify-'))
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }))
const agent = new Agent({ keepAlive: true })
const started = performance.now()
await verify()

async function verify(): Promise<void> {
  build()
  const objects = readModel(file)
  const older = sentModel(objects)
  if (older.rootId !== rootId) throw new Error(`the last object of ${file} is ${older.rootId}, not ${rootId}`)
  const newerObjects = laterVersion(objects, CHANGED_ONE_IN, createRandom(1))
  const newer = sentModel(newerObjects)
  const data = join(scratch, 'data')
  let server = await start(data)
  const token = await issueToken(data, PROJECT)
  const target = (): Target => ({ url: server.url, token, projectId: PROJECT })
  const ask: Ask = (path, options) => askServer(target(), path, options)
  try {
    const uploaded = await upload(target(), objects)
    say(`uploaded: ${describe(uploaded)}`)
    say(`uploaded again: ${describe(await upload(target(), objects))}`)
    await verifyBothWays(ask, older, 'the model')
    server = await crash(server, data)
    if (chosen.storage !== 'memory') await verifyBothWays(ask, older, 'the model after kill -9')
    say(`uploaded: ${describe(await upload(target(), newerObjects))}`)
    await verifyHave(ask, PROJECT, older, newer)
    say('the later version less the older one, at once: the same bytes')
    await verifyBothWays(ask, newer, 'the later version')
    await verifyHave(ask, PROJECT, older, newer)
    const { up, down } = await verifyDeltas(
      ask,
      target(),
      objects,
      laterVersion(objects, FEW_CHANGED_ONE_IN, createRandom(2)),
      uploaded.gzipBytes,
    )
    say(
      `a version in which 1 in ${FEW_CHANGED_ONE_IN} differs, as deltas: the same bytes, for ${percent(up)} of an upload and ${percent(down)} of a download`,
    )
    server = await crash(server, data)
    if (chosen.storage !== 'memory') await verifyHave(ask, PROJECT, older, newer)
    say(
      `the later version less the older one, with plans${chosen.storage === 'memory' ? '' : ' and after kill -9'}: the same bytes`,
    )
  } finally {
    await server.stop()
  }
}

function readModel(path: string): ModelObject[] {
  const bytes = readFileSync(path)
  const text = (bytes[0] === 0x1f ? gunzipSync(bytes) : bytes).toString()
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((json) => ({ id: (JSON.parse(json) as { id: string }).id, json }))
}

async function start(data: string): Promise<RunningServer> {
  return startServer(data, ['--port', '0', '--storage', chosen.storage])
}

/** Memory storage does not outlive its process, so the process goes on. */
async function crash(server: RunningServer, data: string): Promise<RunningServer> {
  if (chosen.storage === 'memory') return server
  process.kill(server.pid, 'SIGKILL')
  await server.ended
  return start(data)
}

async function upload(target: Target, objects: readonly ModelObject[]): Promise<UploadReport> {
  return uploadModel(target, [objects], { skipHeld: true })
}

/** At once, which may be before there is a plan, and with one. */
async function verifyBothWays(ask: Ask, model: SentModel, what: string): Promise<void> {
  const atOnce = await verifyDownloads(ask, PROJECT, model)
  await untilPlanned(ask, `/objects/${PROJECT}/${model.rootId}`)
  const planned = await verifyDownloads(ask, PROJECT, model)
  say(`${what}: ${model.texts.size} objects, the same bytes in ${atOnce + planned} downloads`)
}

/** The bytes of the answer as they come over the wire. */
async function askServer(
  { url, token }: Target,
  path: string,
  { headers = {}, body }: Parameters<Ask>[1] = {},
): ReturnType<Ask> {
  const options = {
    method: body === undefined ? 'GET' : 'POST',
    agent,
    headers: { ...headers, Authorization: `Bearer ${token}` },
  }
  const asked = request(`${url}${path}`, options).end(body)
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  const bytes = await buffer(response)
  return { status: response.statusCode ?? 0, headers: new Headers(response.headers as Record<string, string>), bytes }
}

function describe({ objects, sentObjects, requests, gzipBytes }: UploadReport): string {
  return `${sentObjects} of ${objects} objects in ${requests} requests, ${gzipBytes} bytes`
}

function percent(share: number): string {
  return `${(share * 100).toFixed(2)} %`
}

function say(what: string): void {
  console.log(`${((performance.now() - started) / 1_000).toFixed(1)} s  ${chosen.storage}: ${what}`)
}
