import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Ending } from './folder.ts'

export interface TestProcess {
  readonly child: ChildProcess
  /** What it has written on its standard error. */
  readonly said: () => string
  /** The next message; rejects when the process ends before it. */
  readonly next: <T>() => Promise<T>
  /** Sends a message, and resolves with the answer. */
  readonly ask: <T>(message: object | string) => Promise<T>
}

export interface TestProcessOptions {
  readonly execArgv?: readonly string[]
  /** `ulimit -n`. */
  readonly openFilesMax?: number
}

/** A file of the tests as a process of its own with an IPC channel, killed when the test ends. `settings` is its argument. */
export function testProcess(
  ending: Ending,
  file: URL,
  settings: object,
  { execArgv = [], openFilesMax }: TestProcessOptions = {},
): TestProcess {
  const command = [process.execPath, ...execArgv, ...process.execArgv, fileURLToPath(file), JSON.stringify(settings)]
  const limit = openFilesMax === undefined ? '' : `ulimit -n ${openFilesMax} 2>/dev/null; `
  const child = spawn('sh', ['-c', `${limit}exec "$0" "$@"`, ...command], {
    stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
  })
  assert.ok(child.stderr)
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
  ending.after(() => void child.kill('SIGKILL'))
  const next = async <T>(): Promise<T> => {
    const exit = new AbortController()
    const onExit = (): void => exit.abort(new Error(`the process has ended: ${said}`))
    child.once('exit', onExit)
    try {
      return ((await once(child, 'message', { signal: exit.signal })) as [T])[0]
    } finally {
      child.off('exit', onExit)
    }
  }
  const ask = <T>(message: object | string): Promise<T> => {
    const answered = next<T>()
    child.send(message)
    return answered
  }
  return { child, said: () => said, next, ask }
}
