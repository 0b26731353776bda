import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { countingProxy } from './proxy.ts'
import { fingerprint, writeModel } from './model-file.ts'

/** A model that is moved by the command, in processes of its own, while processes are killed and connections break. */
export interface MoveOptions {
  readonly folder: string
  /** The service, and a token for the projects `killed` and `broken`. */
  readonly url: string
  readonly token: string | undefined
  readonly objects: number
  /** Each connection of the second move breaks after so many bytes. */
  readonly breakEveryBytes: number
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

/** Every step, in its order. Fails when something arrives that was not sent, or does not arrive. */
export async function moveModels(t: TestContext, options: MoveOptions): Promise<Readonly<Record<string, Moved>>> {
  const { folder, objects, url, breakEveryBytes } = options
  const files = { first: join(folder, 'first.txt'), second: join(folder, 'second.txt'), down: join(folder, 'down.txt'), changes: join(folder, 'changes.txt') }
  const first = await writeModel(files.first, { objects })
  const second = await writeModel(files.second, { objects, revision: 1, changed: 0.01 })
  const whole = await fingerprint([files.first], sha)
  const calm = await countingProxy(t, url)
  const rough = await countingProxy(t, url, breakEveryBytes)
  const moved: Record<string, Moved> = {}
  const move = async (name: string, proxy: typeof calm, args: readonly string[], killAfterBytes?: number): Promise<void> => {
    proxy.reset()
    const project = proxy === calm ? 'killed' : 'broken'
    const run = await runCommand(options, [...args, '--url', proxy.url, '--project', project, '--json', '--quiet'], killAfterBytes === undefined ? undefined : proxy.passed(killAfterBytes))
    moved[name] = { what: name, ...run, up: proxy.up(), down: proxy.down(), breaks: proxy.breaks() }
    t.diagnostic(describe(moved[name]))
  }

  await move('upload over breaking connections', rough, ['upload', files.first])
  await move('upload, killed', calm, ['upload', files.first], moved['upload over breaking connections'].report.wireBytes / 2)
  await move('upload, continued', calm, ['upload', files.first])
  await move('download over breaking connections', rough, ['download', first, '-o', files.down])
  assert.deepEqual(await fingerprint([files.down], sha), whole)
  await move('download, killed', calm, ['download', first, '-o', files.down], moved['download over breaking connections'].report.receivedBytes / 2)
  assert.ok(existsSync(`${files.down}.partial`))
  await move('download, continued', calm, ['download', first, '-o', files.down])
  assert.equal(existsSync(`${files.down}.partial`), false)
  assert.deepEqual(await fingerprint([files.down], sha), whole)
  await move('upload of a second version', calm, ['upload', files.second, '--have', files.first])
  await move('download of a second version', calm, ['download', second, '--have', first, '-o', files.changes])
  const { lines } = await fingerprint([files.changes], sha)
  assert.equal(lines, moved['upload of a second version'].report.sent)
  return moved
}

/** What the issue of a move must be, whatever its size. */
export function checkMoves(moves: Readonly<Record<string, Moved>>, objects: number): void {
  const { report: continued } = moves['upload, continued']
  assert.ok(continued.held > objects / 10, `${continued.held} objects were held after the kill`)
  assert.equal(continued.held + continued.sent, objects)
  const { report: broken, breaks } = moves['upload over breaking connections']
  assert.equal(broken.sent, objects)
  assert.ok(breaks > 1, `${breaks} breaks`)
  const { report: resumed } = moves['download over breaking connections']
  const [up, down] = [broken.wireBytes, resumed.receivedBytes]
  assert.ok(resumed.resumes > 1, `${resumed.resumes} resumes`)
  assert.equal(resumed.objects, objects)
  const again = moves['download, continued']
  assert.ok(again.report.keptBytes > down / 10, `${again.report.keptBytes} bytes were kept`)
  assert.ok(again.down < down * 0.9, `${again.down} of ${down} bytes were sent again`)
  const [uploadShare, downloadShare] = [moves['upload of a second version'].up / up, moves['download of a second version'].down / down]
  assert.ok(uploadShare < 0.05, `the upload of the second version is ${uploadShare} of the first`)
  assert.ok(downloadShare < 0.05, `the download of the second version is ${downloadShare} of the first`)
}

async function runCommand({ token, command }: MoveOptions, args: readonly string[], kill: Promise<void> | undefined): Promise<Pick<Moved, 'seconds' | 'peakMb' | 'report'>> {
  const started = performance.now()
  const child = spawn(process.execPath, [...command, ...args], { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, STOWAGE_TOKEN: token ?? '' } })
  void kill?.then(() => child.kill('SIGKILL'))
  let peakMb = 0
  const watch = setInterval(() => (peakMb = Math.max(peakMb, peakOf(child))), PEAK_EVERY_MS)
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit') as Promise<[number | null]>])
  clearInterval(watch)
  assert.equal(code, kill === undefined ? 0 : null, stderr)
  return { seconds: (performance.now() - started) / 1_000, peakMb, report: kill === undefined ? (JSON.parse(stdout) as Record<string, number>) : {} }
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

function sha(line: string): string {
  return hash('sha256', line, 'hex')
}
