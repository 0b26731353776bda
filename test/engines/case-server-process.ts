import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { CaseServerOptions } from './case-server.ts'

const SERVER = fileURLToPath(new URL('./case-server.ts', import.meta.url))

/** A server of the cases in a process of its own, which ends with the process that started it. */
export interface CaseServerProcess {
  readonly child: ChildProcess
  readonly url: string
  /** Throws if it ended by itself, with what it said at last. */
  assertRuns(): Promise<void>
}

export async function startCaseServer(options: CaseServerOptions): Promise<CaseServerProcess> {
  const child = fork(SERVER, [JSON.stringify(options)], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  const said = child.stderr === null ? Promise.resolve('') : text(child.stderr)
  const exit = once(child, 'exit').then(async () => Promise.reject(new Error(`a server ended: ${await said}`)))
  exit.catch(() => undefined)
  const [port] = (await Promise.race([once(child, 'message'), exit])) as [number]
  const assertRuns = async (): Promise<void> => {
    if (child.exitCode !== null) await exit
  }
  return { child, url: `http://127.0.0.1:${port}`, assertRuns }
}
