import { folderCredentials } from '../../src/credentials/folder-credentials.ts'
import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { issueToken } from '../../src/access/token-store.ts'
import { REPOSITORY } from '../../bench/repository.ts'
import { build } from '../../bench/server.ts'
import { newDataFolder, startServer } from '../cli/command.ts'
import { moveModels } from '../cli/moving.ts'

/** `STOWAGE_SOAK_OBJECTS` chooses another size of the model. */
const OBJECTS = Number(process.env.STOWAGE_SOAK_OBJECTS ?? 1_000_000)
const BREAK_EVERY_BYTES = 4 * 1_048_576
const RESIDENT_MB_MAX = 300
const SHARE_MAX = 0.05
const ALL_PROJECTS = '*'

test(`${OBJECTS} objects upload and download through kills and broken connections, in a client with less than ${RESIDENT_MB_MAX} MB`, async (t) => {
  build()
  const data = newDataFolder(t)
  const folder = dirname(data)
  mkdirSync(folder, { recursive: true })
  const server = await startServer(t, ['--data', data, '--json'])
  const { url } = JSON.parse(server.line) as { url: string }
  const { token } = await issueToken(folderCredentials(data), {
    projects: new Map([[ALL_PROJECTS, 'write']]),
    subject: 'soak',
    ttlSeconds: 86_400,
  })
  const command = [join(REPOSITORY, 'dist', 'src', 'cli', 'stowage.cjs')]
  const moves = await moveModels(t, {
    folder,
    url,
    token,
    objects: OBJECTS,
    batchBytes: 1_048_576,
    breakEveryBytes: BREAK_EVERY_BYTES,
    shareMax: SHARE_MAX,
    isThorough: true,
    command,
  })
  for (const { what, peakMb } of moves) assert.ok(peakMb < RESIDENT_MB_MAX, `${what}: ${peakMb} MB`)
  await server.stop()
})
