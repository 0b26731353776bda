import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { closesByItself } from '../support/patience.ts'
import type { Command, Holdings, ServerSettings, Told } from './settings.ts'
import { temporaryFolder } from '../support/folder.ts'

export const PREFIX = '/models'

export interface HostProcess {
  readonly port: number
  /** With the mount's prefix. */
  readonly url: string
  tell(command: Exclude<Told, 'holdings'>): Promise<void>
  holdings(): Promise<Holdings>
  /**
   * Closes the service, which waits for whatever is under way, and ends the process. Fails if it has said anything but
   * this on its standard error.
   */
  end(maySay?: RegExp): Promise<void>
}

export interface HostProcessOptions extends Partial<Omit<ServerSettings, 'host' | 'prefix'>> {
  /** `ulimit -n`. */
  readonly openFilesMax?: number
}

/** A mount in a process of its own, over a data folder that is gone with the test. */
export async function hostProcess(
  t: TestContext,
  host: string,
  options: HostProcessOptions = {},
): Promise<HostProcess> {
  const { openFilesMax = 4_096, path = temporaryFolder(t), ...rest } = options
  const settings: ServerSettings = { host, path, prefix: PREFIX, ...rest }
  const command = [
    process.execPath,
    ...process.execArgv,
    fileURLToPath(new URL('server.ts', import.meta.url)),
    JSON.stringify(settings),
  ]
  const child = spawn('sh', ['-c', `ulimit -n ${openFilesMax} 2>/dev/null; exec "$0" "$@"`, ...command], {
    stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
  })
  let said = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (said += text))
  t.after(() => child.kill('SIGKILL'))
  const { port } = (await nextMessage(child, () => said)) as { readonly port: number }
  const ask = async (command: Command): Promise<void> => void (await answerTo(command))
  const answerTo = async (command: Command): Promise<unknown> => {
    const answered = nextMessage(child, () => said)
    child.send(command)
    return ((await answered) as { readonly answer: unknown }).answer
  }
  return {
    port,
    url: `http://127.0.0.1:${port}${PREFIX}`,
    tell: ask,
    holdings: async () => (await answerTo('holdings')) as Holdings,
    end: async (maySay) => {
      await closesByItself({ close: ({ graceMs }) => ask({ close: { graceMs } }) })
      const exited = once(child, 'exit')
      child.disconnect()
      await exited
      if (maySay?.test(said) !== true) assert.equal(said, '')
    },
  }
}

async function nextMessage(child: ChildProcess, said: () => string): Promise<unknown> {
  const exit = new AbortController()
  const onExit = (): void => exit.abort(new Error(`the server has ended: ${said()}`))
  child.once('exit', onExit)
  try {
    const [message] = (await once(child, 'message', { signal: exit.signal })) as [unknown]
    return message
  } finally {
    child.off('exit', onExit)
  }
}
