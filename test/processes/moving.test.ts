import { mkdirSync } from 'node:fs'
import { test } from 'node:test'
import { served } from '../http/served.ts'
import { COMMAND, newDataFolder } from '../cli/command.ts'
import { moveModels } from '../cli/moving.ts'

/**
 * The soak of the client with a small model, of which a changed object is a larger part: see test/soak/client.test.ts.
 */
test('a model transfers through kills and broken connections, and its second version costs little', async (t) => {
  const folder = newDataFolder(t)
  mkdirSync(folder)
  const { url } = await served(t)
  await moveModels(t, {
    folder,
    url,
    token: undefined,
    objects: 2_500,
    batchBytes: 65_536,
    breakEveryBytes: 200_000,
    shareMax: 0.05,
    isThorough: false,
    command: COMMAND,
  })
})
