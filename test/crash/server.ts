import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { withoutOwnSettings } from '../../bench/own-settings.ts'
import { REPOSITORY } from '../../bench/repository.ts'

/** The built command; `npm run build` makes it. */
const COMMAND: readonly string[] = [join(REPOSITORY, 'dist', 'src', 'cli', 'stowage.cjs')]
const UNSYNCED_SERVER: readonly string[] = [
  ...process.execArgv,
  fileURLToPath(new URL('./unsynced-server.ts', import.meta.url)),
]
const START_TIMEOUT_MS = 180_000

export type Storage = 'filesystem' | 'level'

export interface ServerOptions {
  readonly data: string
  readonly storage: Storage
  readonly env?: NodeJS.ProcessEnv
  /** A server that acknowledges without having synced. */
  readonly unsynced?: boolean
}

export interface CrashServer {
  /** Where it listens; rejects with what it said when it does not come up. */
  readonly url: Promise<string>
  /** Resolves once the process is gone. */
  end(signal: NodeJS.Signals): Promise<void>
}

export function startServer({ data, storage, env = {}, unsynced = false }: ServerOptions): CrashServer {
  const args = unsynced
    ? [...UNSYNCED_SERVER, storage, data]
    : [...COMMAND, 'serve', '--json', '--port', '0', '--data', data, '--storage', storage]
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...withoutOwnSettings(process.env), ...env },
  })
  const endWithThisProcess = (): boolean => child.kill('SIGKILL')
  process.once('exit', endWithThisProcess)
  const exit = once(child, 'exit').then(() => void process.off('exit', endWithThisProcess))
  return {
    url: listening(child, exit),
    end: async (signal) => {
      child.kill(signal)
      await exit
    },
  }
}

async function listening(child: ChildProcess, exit: Promise<void>): Promise<string> {
  if (child.stdout === null || child.stderr === null) throw new TypeError('the server was started without pipes')
  const said = text(child.stderr)
  const line = once(createInterface({ input: child.stdout }), 'line', {
    signal: AbortSignal.timeout(START_TIMEOUT_MS),
  }) as Promise<[string]>
  line.catch(() => undefined)
  const early = exit.then(async () => Promise.reject(new Error(`the server did not come up: ${await said}`)))
  early.catch(() => undefined)
  const [first] = await Promise.race([line, early])
  return (JSON.parse(first) as { url: string }).url
}

/** Runs the built command to its end; the answer is its exit code and what it printed. */
export async function runCommand(
  args: readonly string[],
): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn(process.execPath, [...COMMAND, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const [output, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ])
  return { code, output: output + errors }
}
