import { execFile, spawn, spawnSync } from 'node:child_process'
import { cpSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { withoutOwnSettings } from './own-settings.ts'
import { REPOSITORY } from './repository.ts'
import { type RunningServer, serverOf } from './server-process.ts'

/** The built command. */
export const COMMAND: string = join(REPOSITORY, 'dist', 'src', 'cli', 'stowage.cjs')
const COMPILER = join(REPOSITORY, 'node_modules', 'typescript', 'bin', 'tsc')
/** The unit of `/proc/<pid>/stat`, on every Linux that Node runs on. */
const CLOCK_TICKS_PER_SECOND = 100
const run = promisify(execFile)

/** Compiles the package and copies the assets of its pages, as `npm run build` does. */
export function build(): void {
  compile('tsconfig.build.json')
  const [from, to] = ['src', 'dist/src'].map((folder) => join(REPOSITORY, folder, 'pages', 'assets'))
  cpSync(from, to, { recursive: true, filter: (path) => !path.endsWith('.json') })
}

/** Compiles the example functions against the built package, and returns their files. */
export function buildFunctions(names: readonly string[]): readonly string[] {
  compile(join('bench', 'tsconfig.functions.json'))
  return names.map((name) => join(REPOSITORY, 'dist', 'bench', 'functions', `${name}.js`))
}

function compile(project: string): void {
  const { status } = spawnSync(process.execPath, [COMPILER, '-p', join(REPOSITORY, project)], { stdio: 'inherit' })
  if (status !== 0) throw new Error('the build failed')
}

/**
 * `stowage serve` in a process of its own; resolves once it listens. It is out of the terminal's reach, as Ctrl-C would otherwise reach it
 * twice, and ends with this process. With a token it offers a link that signs a browser in.
 */
export async function startServer(
  dataFolder: string,
  options: readonly string[] = [],
  token: string = '',
): Promise<RunningServer> {
  const child = spawn(process.execPath, [COMMAND, 'serve', '--data', dataFolder, '--json', ...options], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
    env: { ...withoutOwnSettings(process.env), STOWAGE_TOKEN: token },
  })
  return await serverOf(child)
}

/** Makes Ctrl-C an exit like any other, so that child processes end too. */
export function exitOnSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130))
}

/** A new token that may read and write one project. */
export async function issueToken(dataFolder: string, projectId: string): Promise<string> {
  const options = ['--data', dataFolder, '--project', projectId, '--access', 'write']
  const { stdout } = await run(process.execPath, [COMMAND, 'token', ...options], {
    env: withoutOwnSettings(process.env),
  })
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
