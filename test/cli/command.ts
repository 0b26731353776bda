import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Ending, temporaryFolder } from '../support/folder.ts'
import { PATIENCE_MS } from '../support/patience.ts'

/** The arguments of `process.execPath` that run the command. */
export const COMMAND: readonly string[] = [
  ...process.execArgv,
  fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url)),
]

export interface Outcome {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** The command in a process of its own. */
export function spawnCommand(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
  command: readonly string[] = COMMAND,
): ChildProcessByStdio<null, Readable, Readable> {
  return spawn(process.execPath, [...command, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  })
}

/** Runs the command to its end; `command` is that of another build. */
export async function stowage(
  args: readonly string[],
  env?: NodeJS.ProcessEnv,
  command?: readonly string[],
): Promise<Outcome> {
  const child = spawnCommand(args, env, command)
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ])
  return { code, stdout, stderr }
}

/** A path in a temporary folder of the test; nothing is there yet. */
export function newDataFolder(context: TestContext): string {
  return join(temporaryFolder(context), 'data')
}

export interface RunningServer {
  readonly child: ChildProcessByStdio<null, Readable, Readable>
  /** The line that it printed when it listened. */
  readonly line: string
  /** Sends the signal, unless it has ended, and tells how it ended. */
  stop(signal?: NodeJS.Signals): Promise<Outcome>
}

/** `stowage serve` with these options, once it has printed its line. */
export async function startServer(
  context: Ending,
  args: readonly string[],
  env?: NodeJS.ProcessEnv,
  command?: readonly string[],
): Promise<RunningServer> {
  const child = spawnCommand(['serve', '--port', '0', ...args], env, command)
  context.after(() => void child.kill('SIGKILL'))
  const stderr = text(child.stderr)
  const exit = once(child, 'exit') as Promise<[number | null]>
  let stdout = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk
  })
  const signal = AbortSignal.timeout(PATIENCE_MS)
  while (!stdout.includes('\n') && !signal.aborted)
    await Promise.race([
      once(child.stdout, 'data', { signal }).catch(() => undefined),
      exit.then(async () => Promise.reject(new Error(await stderr))),
    ])
  if (!stdout.includes('\n')) throw new Error(`the server printed no line within ${PATIENCE_MS} ms, only "${stdout}"`)
  return {
    child,
    line: stdout.slice(0, stdout.indexOf('\n')),
    stop: async (signal = 'SIGTERM') => {
      child.kill(signal)
      const [code] = await exit
      return { code, stdout, stderr: await stderr }
    },
  }
}
