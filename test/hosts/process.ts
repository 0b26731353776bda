import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import { testProcess } from '../support/child-process.ts'
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
  const { child, said, next, ask } = testProcess(t, new URL('server.ts', import.meta.url), settings, { openFilesMax })
  const { port } = await next<{ readonly port: number }>()
  const tell = async <T>(command: Command): Promise<T> => (await ask<{ readonly answer: T }>(command)).answer
  return {
    port,
    url: `http://127.0.0.1:${port}${PREFIX}`,
    tell,
    holdings: () => tell('holdings'),
    end: async (maySay) => {
      await closesByItself({ close: ({ graceMs }) => tell({ close: { graceMs } }) })
      const exited = once(child, 'exit')
      child.disconnect()
      await exited
      if (maySay?.test(said()) !== true) assert.equal(said(), '')
    },
  }
}
