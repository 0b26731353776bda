import assert from 'node:assert/strict'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { storedAccess, issueToken, revokeToken } from '../../src/access/token-store.ts'
import { archives } from '../../src/archive/index.ts'
import { automation } from '../../src/automation-server/index.ts'
import { storedSecretKeys } from '../../src/automation-server/secret-keys.ts'
import type { OpenStorage } from '../../src/cli/client/copy-storage.ts'
import { createClient, type Project } from '../../src/client/index.ts'
import { folderCredentials } from '../../src/credentials/folder-credentials.ts'
import { recordCredentials } from '../../src/credentials/record-credentials.ts'
import { createObjectService, openAccess, type ObjectService, type StorageBackend } from '../../src/index.ts'
import type { AutomationExtension, RunExecutor } from '../../src/automation-server/index.ts'
import { storeId } from '../../src/storage/store-id.ts'
import { furnish, type Furnished, linesOf, PROJECT } from '../archive/support.ts'
import { definition, inProcess } from '../automation-server/support.ts'
import { undying } from '../store/support.ts'
import { temporaryFolder } from '../support/folder.ts'

/** A storage with everything that a copy takes along, and what is in it. */
export interface CopySource extends OpenStorage {
  readonly furnished: Furnished
  readonly tokens: { readonly valid: string; readonly revoked: string }
  readonly secretId: string
}

interface Served {
  readonly service: ObjectService
  readonly extension: AutomationExtension
  project(id: string): Project
}

const SECRET = 'open sesame'
/** Every byte is in it. */
const FILE = Buffer.from(Array.from({ length: 70_001 }, (_, at) => (at * at + at) % 256))
const SEALING_KEY = new Uint8Array(32).fill(5)

const WRITING: RunExecutor = inProcess(async ({ backend, runFile }) => {
  const { apiKey } = runFile.functionInputs as { readonly apiKey?: string }
  await backend.report({
    sequence: 1,
    status: 'running',
    logs: [{ atMs: 1, level: 'info', message: 'line' }],
    annotations: [{ category: 'A', level: 'INFO', objectAppIds: { a: null }, message: 'm', metadata: null }],
  })
  const content = async function* (): AsyncGenerator<Uint8Array> {
    yield FILE
  }
  await backend.storeArtifact({ name: 'f.bin', sizeBytes: FILE.length, idempotencyKey: 'f', content: content() })
  await backend.report({ sequence: 2, status: 'succeeded', message: `${apiKey?.length ?? 0} characters` })
})

/** A storage whose keys and tokens are in its records. */
export function sealedStorage(backend: StorageBackend, place: string): OpenStorage {
  const credentials = recordCredentials(backend.records, { sealingKey: SEALING_KEY, place })
  return { backend: undying(backend), credentials, place }
}

/** A service over a storage with its own keys, as `stowage serve` makes one. */
export async function served<T>({ backend, credentials }: OpenStorage, use: (at: Served) => Promise<T>): Promise<T> {
  const secretKeys = storedSecretKeys(credentials)
  const extension = automation({ secretKeys, functions: [definition(WRITING)] })
  const service = createObjectService({
    backend: undying(backend),
    access: openAccess(),
    extensions: [extension, archives({ secretKeys })],
  })
  const address = {
    url: 'http://in.process',
    token: undefined,
    fetch: (url: string, init: RequestInit) => service.fetch(new Request(url, init)),
  }
  try {
    return await use({ service, extension, project: (id) => createClient(address).project(id) })
  } finally {
    await service.close()
  }
}

export async function copySource(
  t: TestContext,
  objects: number,
  backend: StorageBackend = memoryBackend(),
  folder: string = join(temporaryFolder(t), 'data'),
): Promise<CopySource> {
  const storage = { backend: undying(backend), credentials: folderCredentials(folder), place: folder }
  const projects = new Map([['*', 'write' as const]])
  const [valid, revoked] = [0, 1].map(() => issueToken(storage.credentials, { projects, ttlSeconds: 3_600 }))
  await revokeToken(storage.credentials, (await revoked).record.jti)
  const [furnished, secretId] = await served(storage, async ({ extension, service, project }) => {
    const house = extension.project(PROJECT)
    const address = { url: 'http://in.process', token: undefined, projectId: PROJECT }
    const made = await furnish({ backend, service, extension, address, project: project(PROJECT) }, objects)
    const { pins } = project(PROJECT)
    await pins.add({ rootObjectId: made.versions[0].rootObjectId, name: 'Release', reason: 'sold' })
    await pins.add({ rootObjectId: 'loose', endsAt: '2999-01-01T00:00:00.000Z' })
    await house.models.change(made.modelId, { retention: { keepLastCount: 5, keepAllDays: 30 } })
    const inputs = { tolerance: 1, apiKey: SECRET }
    const wanted = { name: 'Secret', functionId: 'checker', modelId: made.modelId, inputs, trigger: 'manual' } as const
    const { id } = await house.automations.create(wanted)
    const { id: shedId } = await house.models.create({ name: 'Shed' })
    const gone = await house.versions.create(shedId, { rootObjectId: made.versions[1].rootObjectId, message: 'gone' })
    await house.versions.delete(shedId, gone.id)
    await extension.project('models only').models.create({ name: 'Empty' })
    await project('objects only').upload([{ id: 'alone', text: 'ü' }])
    return [made, id] as const
  })
  return { ...storage, furnished, secretId, tokens: { valid: (await valid).token, revoked: (await revoked).token } }
}

/** The target serves the same as the source, byte for byte, to the same tokens. */
export async function assertSame(source: CopySource, target: OpenStorage): Promise<void> {
  const access = await storedAccess(target.credentials)
  const asked = (token: string) => {
    const headers = new Headers({ Authorization: `Bearer ${token}` })
    return access.authenticate({ headers, method: 'GET', path: '/', host: undefined })
  }
  assert.ok(await asked(source.tokens.valid))
  await assert.rejects(async () => {
    if ((await asked(source.tokens.revoked)) === undefined) throw new Error('refused')
  })
  assert.equal(await storeId(target.backend.records), await storeId(source.backend.records))
  const [expected, found] = [await contentOf(source, source), await contentOf(source, target)]
  assert.deepEqual(found, expected)
  await served(target, async ({ extension }) => {
    const { runs } = extension.project(PROJECT)
    const { id } = await runs.start(source.secretId)
    await extension.idle()
    assert.equal((await runs.get(id)).message, `${SECRET.length} characters`, 'the secret was opened')
  })
}

async function contentOf({ furnished }: CopySource, storage: OpenStorage): Promise<unknown> {
  const { models: roots, modelId, runId } = furnished
  return served(storage, async ({ service, extension, project }) => {
    const house = extension.project(PROJECT)
    const run = await house.runs.get(runId)
    const read = async (path: string): Promise<readonly [string | null, string]> => {
      const answer = await service.fetch(new Request(`http://in.process${path}`))
      return [answer.headers.get('etag'), Buffer.from(await answer.arrayBuffer()).toString('base64')]
    }
    return {
      closures: await Promise.all(roots.map(({ rootId }) => linesOf(project(PROJECT), rootId))),
      digests: await Promise.all(roots.map(async ({ rootId }) => (await project(PROJECT).graphInfo(rootId))?.closure)),
      alone: await project('objects only').getText('alone'),
      empty: (await extension.project('models only').models.list()).items,
      models: (await house.models.list()).items,
      versions: (await house.versions.list(modelId)).items,
      automations: (await house.automations.list()).items,
      pins: await project(PROJECT).pins.list(),
      annotations: await house.runs.annotations(runId),
      logs: await house.runs.logs(runId),
      artifacts: await Promise.all(
        run.artifacts.map(async ({ id, name }) => [
          id,
          name,
          await read(`/api/v1/projects/${PROJECT}/artifacts/${id}`),
        ]),
      ),
      run: { ...run, cause: null },
    }
  })
}
