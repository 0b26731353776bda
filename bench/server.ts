import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'

/** The folder of the repository. */
export const REPOSITORY: string = join(import.meta.dirname, '..')

const COMMAND = join(REPOSITORY, 'dist', 'src', 'cli', 'stowage.cjs')
const COMPILER = join(REPOSITORY, 'node_modules', 'typescript', 'bin', 'tsc')
const START_TIMEOUT_MS = 30_000
/** What `/proc/<pid>/stat` counts in, on every Linux that Node runs on. */
const CLOCK_TICKS_PER_SECOND = 100
const run = promisify(execFile)

export interface RunningServer {
  readonly url: string
  readonly pid: number
  /** Resolves with the exit code once the server has ended, by itself or not. */
  readonly ended: Promise<number | null>
  /** Ends the server as Ctrl-C does and waits for it. */
  stop(): Promise<void>
}

/** Compiles the package, as `npm run build` does. */
export function build(): void {
  const { status } = spawnSync(process.execPath, [COMPILER, '-p', join(REPOSITORY, 'tsconfig.build.json')], { stdio: 'inherit' })
  if (status !== 0) throw new Error('the build failed')
}

/**
 * `stowage serve` in a process of its own; resolves once it listens. It is out of the terminal's reach, as Ctrl-C would otherwise reach it
 * twice, and ends with this process.
 */
export async function startServer(dataFolder: string, options: readonly string[] = []): Promise<RunningServer> {
  const child = spawn(process.execPath, [COMMAND, 'serve', '--data', dataFolder, '--json', ...options], { stdio: ['ignore', 'pipe', 'inherit'], detached: true })
  const endWithThisProcess = (): boolean => child.kill('SIGTERM')
  process.once('exit', endWithThisProcess)
  const ended = once(child, 'exit').then(([code]) => {
    process.off('exit', endWithThisProcess)
    return code as number | null
  })
  const { url, pid } = await firstLine(child, ended)
  return {
    url,
    pid,
    ended,
    stop: async () => {
      child.kill('SIGTERM')
      await ended
    },
  }
}

/** Makes Ctrl-C an exit like any other, so that what was started ends too. */
export function exitOnSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130))
}

/** A new token that may read and write one project. */
export async function issueToken(dataFolder: string, projectId: string): Promise<string> {
  const { stdout } = await run(process.execPath, [COMMAND, 'token', '--data', dataFolder, '--project', projectId, '--access', 'write'])
  return stdout.trim()
}

/** Seconds of processor time that a process has used, in user code and in the kernel. Linux only. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS_PER_SECOND
}

/** The most memory that a process has held since it started. Linux only. */
export function peakResidentBytes(pid: number): number {
  const [, kibibytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kibibytes) * 1_024
}

async function firstLine(child: ChildProcess, ended: Promise<number | null>): Promise<{ readonly url: string; readonly pid: number }> {
  if (child.stdout === null) throw new TypeError('the server was started without a pipe')
  const lines = createInterface({ input: child.stdout })
  const early = ended.then((code) => {
    throw new Error(`the server ended with code ${code} before it listened`)
  })
  const [line] = (await Promise.race([once(lines, 'line', { signal: AbortSignal.timeout(START_TIMEOUT_MS) }), early])) as [string]
  early.catch(() => undefined)
  return JSON.parse(line) as { url: string; pid: number }
}
