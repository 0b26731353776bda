import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, MB, repeat, sample } from './measure.ts'
import { building } from './model/building.ts'
import { PROFILES, type ProfileName } from './model/profiles.ts'
import { build, exitOnSignals, issueToken, peakResidentBytes, startServer } from './server.ts'
import { inBatches, jsonArray, postBatch, postBlocks, readyBlocks } from './upload.ts'

/*
 * `npm run bench:upload-bound [-- PROFILE [blocks]]`: how fast uploads can be at most, in terms of one core's gunzip of the same bytes;
 * with `blocks`, uploads of ready blocks. It compares processor times only: of the main thread of the server, of its other threads, and of gunzip. Neither can the uploads be
 * faster than the main thread, nor than all threads together on all cores. Other programs on the machine matter little. Linux only.
 */

const OBJECTS = 20_000
const BATCH_BYTES = MB
const REPETITIONS = 7
const CLIENTS = 4
const NANOSECONDS = 1e9

interface Round {
  readonly main: number
  readonly others: number
  readonly gunzip: number
}

exitOnSignals()
const profile = (process.argv[2] ?? 'geometry') as ProfileName
if (!(profile in PROFILES))
  throw new Error(`the profile is ${profile}; it must be ${Object.keys(PROFILES).join(' or ')}`)
const sendsBlocks = process.argv[3] === 'blocks'
const scratch = mkdtempSync(join(tmpdir(), 'stowage-upload-bound-'))
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }))
build()
await measure()

async function measure(): Promise<void> {
  const batches = [...inBatches(building({ objects: OBJECTS, closure: 'root-less', profile }), BATCH_BYTES)]
  const texts = batches.map(jsonArray)
  const gzipped = texts.map((text) => new Uint8Array(gzipSync(text)))
  const file = join(scratch, 'all.gz')
  writeFileSync(file, Buffer.concat(gzipped))
  const bodies = sendsBlocks ? await Promise.all(batches.map(readyBlocks)) : gzipped
  const data = join(scratch, 'data')
  const server = await startServer(data, ['--port', '0'])
  try {
    const target = { url: server.url, token: await issueToken(data, '*'), projectId: 'warm' }
    await sendAll(target, bodies)
    const rounds = await repeat(REPETITIONS, async (number): Promise<Round> => {
      const before = threadSeconds(server.pid)
      await sendAll({ ...target, projectId: `round-${number}` }, bodies)
      const after = threadSeconds(server.pid)
      return { main: after.main - before.main, others: after.others - before.others, gunzip: gunzipSeconds(file) }
    })
    report(
      rounds,
      texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0),
    )
    console.log(`  memory of the server: ${Math.round(peakResidentBytes(server.pid) / MB)} MB resident at most`)
  } finally {
    await server.stop()
  }
}

async function sendAll(
  target: Parameters<typeof postBatch>[0],
  bodies: readonly Uint8Array<ArrayBuffer>[],
): Promise<void> {
  const waiting = [...bodies]
  const sendOne = async (): Promise<void> => {
    for (let body = waiting.shift(); body !== undefined; body = waiting.shift())
      await (sendsBlocks ? postBlocks(target, body) : postBatch(target, body))
  }
  await Promise.all(Array.from({ length: CLIENTS }, sendOne))
}

/** The seconds that each kind of thread of a process has run for so far. */
function threadSeconds(pid: number): { readonly main: number; readonly others: number } {
  let main = 0
  let others = 0
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const [nanoseconds] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')
    if (Number(thread) === pid) main += Number(nanoseconds) / NANOSECONDS
    else others += Number(nanoseconds) / NANOSECONDS
  }
  return { main, others }
}

/** The processor time of `gzip -dc`, which the shell tells of its children in the second line of `times`. */
function gunzipSeconds(file: string): number {
  const printed = execFileSync('sh', ['-c', 'gzip -dc "$0" > /dev/null; times', file], { encoding: 'utf8' })
  let seconds = 0
  for (const [, minutes, rest] of (printed.split('\n')[1] ?? '').matchAll(/(\d+)m([\d.]+)s/g))
    seconds += Number(minutes) * 60 + Number(rest)
  return seconds
}

function report(rounds: readonly Round[], jsonBytes: number): void {
  const cores = availableParallelism()
  const bound = ({ main, others, gunzip }: Round): number => gunzip / Math.max(main, (main + others) / cores)
  console.log(
    `${profile}${sendsBlocks ? ' as ready blocks' : ''}, ${(jsonBytes / MB).toFixed(0)} MB of JSON, ${rounds.length} rounds: median (min to max)`,
  )
  console.log(`  main thread of the server: ${describe(sample(rounds.map(({ main }) => main)), 's')}`)
  console.log(`  its other threads: ${describe(sample(rounds.map(({ others }) => others)), 's')}`)
  console.log(`  gunzip: ${describe(sample(rounds.map(({ gunzip }) => gunzip)), 's')}`)
  console.log(`  uploads, at most, on ${cores} cores: ${describe(sample(rounds.map(bound)), 'of gunzip')}`)
}
