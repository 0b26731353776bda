import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { SeenIds } from '../../src/client/common/seen-ids.ts'
import { authorization } from '../contract/sides.ts'
import { eventually } from '../support/patience.ts'
import { countingProxy } from './proxy.ts'
import { fingerprint, writeModel } from './model-file.ts'

/** A model that is moved by the command, in processes of its own, while processes are killed and connections break. */
export interface MoveOptions {
  readonly folder: string
  /** The service, and a token for the projects `calm` and `rough`. */
  readonly url: string
  readonly token: string | undefined
  readonly objects: number
  /** JSON in one request of an upload, about. */
  readonly batchBytes: number
  /** Connections break after so many bytes. */
  readonly breakEveryBytes: number
  /**
   * The most that a second version, in which 1 in 100 objects differs, may cost of the first one's bytes: whether all
   * of them are in one part of the building or not.
   */
  readonly shareMax: number
  /** Also moves the whole model at once over connections that break. */
  readonly isThorough: boolean
  /** How Node is told to run the command. */
  readonly command: readonly string[]
}

export interface Moved {
  readonly what: string
  readonly seconds: number
  /** The most memory that the command's process held. 0 where that cannot be told. */
  readonly peakMb: number
  readonly up: number
  readonly down: number
  readonly breaks: number
  readonly report: Readonly<Record<string, number>>
}

const MB = 1_048_576
const PEAK_EVERY_MS = 100
/** Time for what has arrived to be written before a kill. */
const BEFORE_KILL_MS = 250
/** About half of what an object costs on the wire, with the question whether it is held. */
const KILL_AFTER_BYTES_PER_OBJECT = 150
const CHANGED = 0.01

/**
 * Moves a model and its second version up and down. Fails when something is lost, or costs more than it may. Resolves
 * with what each step took.
 */
export async function moveModels(t: TestContext, options: MoveOptions): Promise<readonly Moved[]> {
  const { folder, objects, url, breakEveryBytes, isThorough, shareMax } = options
  const [firstFile, secondFile, downFile, changesFile] = ['first.txt', 'second.txt', 'down.txt', 'changes.txt'].map(
    (name) => join(folder, name),
  )
  const first = await writeModel(firstFile, { objects })
  const second = await writeModel(secondFile, { objects, revision: 1, changed: CHANGED, changes: 'in one part' })
  const whole = await fingerprint([firstFile], sha)
  const proxy = await countingProxy(t, url)
  const moves: Moved[] = []
  const move = async (
    what: string,
    line: 'calm' | 'rough',
    project: string,
    args: readonly string[],
    killAfterBytes?: number,
    beforeKill?: () => Promise<void>,
  ): Promise<Moved> => {
    proxy.reset(line === 'rough' ? breakEveryBytes : Infinity)
    const kill = killAfterBytes === undefined ? undefined : proxy.holdAfter(killAfterBytes).then(beforeKill)
    const run = await runCommand(
      options,
      [...args, '--url', proxy.url, '--project', project, '--json', '--quiet'],
      kill,
    )
    const moved = { what, ...run, up: proxy.up(), down: proxy.down(), breaks: proxy.breaks() }
    moves.push(moved)
    t.diagnostic(describe(moved))
    return moved
  }
  const upload = ['upload', firstFile, '--batch-bytes', String(options.batchBytes)]
  const download = ['download', first, '-o', downFile]

  if (isThorough) {
    const { report, breaks } = await move('upload over breaking connections', 'rough', 'rough', upload)
    assert.equal(report.sent, objects)
    assert.ok(breaks > 1, `${breaks} breaks`)
  }
  await move('upload, killed', 'calm', 'calm', upload, objects * KILL_AFTER_BYTES_PER_OBJECT)
  const { report: continued } = await move('upload, continued over breaking connections', 'rough', 'calm', upload)
  assert.ok(continued.held > objects / 10, `${continued.held} objects were held after the kill`)
  assert.equal(continued.held + continued.sent, objects)
  const uploadBytes = (continued.wireBytes / continued.sent) * objects

  if (isThorough) {
    const { report } = await move('download over breaking connections', 'rough', 'rough', download)
    assert.ok(report.resumes > 1, `${report.resumes} resumes`)
    assert.deepEqual(await fingerprint([downFile], sha), whole)
  }
  const head = {
    method: 'HEAD',
    headers: { accept: 'text/plain', 'accept-encoding': 'gzip', ...authorization(options.token) },
  }
  await eventually(
    async () => (await fetch(`${url}/objects/calm/${first}`, head)).headers.has('etag'),
    'the graph has a plan, without which no download can be continued',
  )
  const killAfterBytes = objects * KILL_AFTER_BYTES_PER_OBJECT
  await move('download, killed', 'calm', 'calm', download, killAfterBytes, () =>
    eventually(() => bytesOf(`${downFile}.partial`) > killAfterBytes / 2, 'what has come is written'),
  )
  const { report: resumed } = await move('download, continued over breaking connections', 'rough', 'calm', download)
  const downloadBytes = resumed.keptBytes + resumed.receivedBytes
  assert.ok(resumed.keptBytes > downloadBytes / 10, `${resumed.keptBytes} bytes were kept`)
  assert.ok(resumed.resumes > 0, `${resumed.resumes} resumes`)
  assert.equal(existsSync(`${downFile}.partial`), false)
  assert.deepEqual(await fingerprint([downFile], sha), whole)

  const checkShares = async (what: string, root: string): Promise<void> => {
    const uploaded = await move(`upload of ${what}`, 'calm', 'calm', ['upload', secondFile, '--have', firstFile])
    const downloaded = await move(`download of ${what}`, 'calm', 'calm', [
      'download',
      root,
      '--base',
      downFile,
      '-o',
      changesFile,
    ])
    assert.deepEqual(await fingerprint([changesFile], sha), await differenceOf(firstFile, secondFile))
    assert.equal((await fingerprint([changesFile], sha)).lines, uploaded.report.sent)
    const [up, down] = [(uploaded.up + uploaded.down) / uploadBytes, (downloaded.up + downloaded.down) / downloadBytes]
    t.diagnostic(`${what} costs ${(up * 100).toFixed(2)} % up and ${(down * 100).toFixed(2)} % down`)
    assert.ok(up < shareMax && down < shareMax, `${up} up, ${down} down`)
  }
  await checkShares('a second version', second)
  // Where one object in 100 differs everywhere, most groups differ too, and each names all that is below it.
  await checkShares(
    'a version that differs everywhere',
    await writeModel(secondFile, { objects, revision: 2, changed: CHANGED }),
  )
  return moves
}

async function runCommand(
  { token, command }: MoveOptions,
  args: readonly string[],
  kill: Promise<void> | undefined,
): Promise<Pick<Moved, 'seconds' | 'peakMb' | 'report'>> {
  const started = performance.now()
  const child = spawn(process.execPath, [...command, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, STOWAGE_TOKEN: token ?? '' },
  })
  void kill?.then(() => setTimeout(() => child.kill('SIGKILL'), BEFORE_KILL_MS))
  let peakMb = 0
  const watch = setInterval(() => (peakMb = Math.max(peakMb, peakOf(child))), PEAK_EVERY_MS)
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ])
  clearInterval(watch)
  assert.equal(code, kill === undefined ? 0 : null, stderr)
  return {
    seconds: (performance.now() - started) / 1_000,
    peakMb,
    report: kill === undefined ? (JSON.parse(stdout) as Record<string, number>) : {},
  }
}

function bytesOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

function peakOf({ pid }: ChildProcess): number {
  try {
    const [, kibibytes = '0'] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return Number(kibibytes) / 1_024
  } catch {
    return 0
  }
}

function describe({ what, seconds, peakMb, up, down, breaks, report }: Moved): string {
  return `${what}: ${seconds.toFixed(1)} s, ${peakMb.toFixed(0)} MB resident at most, ${(up / MB).toFixed(2)} MB up, ${(down / MB).toFixed(2)} MB down, ${breaks} breaks, ${JSON.stringify(report)}`
}

/** The fingerprint of the lines of one file that the other one lacks. */
async function differenceOf(olderFile: string, newerFile: string): ReturnType<typeof fingerprint> {
  const older = new SeenIds()
  for await (const line of createInterface({ input: createReadStream(olderFile), crlfDelay: Infinity }))
    older.add(line.slice(0, line.indexOf('\t')))
  let lines = 0
  let sum = 0n
  for await (const line of createInterface({ input: createReadStream(newerFile), crlfDelay: Infinity })) {
    if (older.has(line.slice(0, line.indexOf('\t')))) continue
    lines += 1
    sum += BigInt(`0x${sha(line).slice(0, 16)}`)
  }
  return { lines, sum }
}

function sha(line: string): string {
  return hash('sha256', line, 'hex')
}
