import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { archives } from '../../src/archive/index.ts'
import { automation } from '../../src/automation-server/index.ts'
import { type Access, claimAuthorize, createObjectService } from '../../src/index.ts'
import { definition, inProcess, uploadObjects } from '../automation-server/support.ts'

const ID = '0190000000000000000000000000abcd'
const TIME = '2026-01-02T03:04:05.678Z'
const MODEL = {
  id: ID,
  name: 'House',
  createdAt: TIME,
  versionCount: 0,
  latestVersionId: null,
  retention: null,
  deletedAt: null,
}
const VERSION = {
  id: ID,
  modelId: ID,
  rootObjectId: 'root',
  message: '',
  source: null,
  runId: null,
  createdAt: TIME,
  kept: false,
  deletedAt: null,
}
const AUTOMATION = {
  id: ID,
  name: 'Check',
  functionId: 'checker',
  modelId: ID,
  inputs: {},
  trigger: 'manual',
  enabled: true,
  projects: [],
  createdAt: TIME,
  updatedAt: TIME,
}

/** `Bearer <subject>:<right>` has that right in `house`; `sealed` is to read, with sealed secrets. */
const ACCESS: Access<unknown> = {
  authenticate: ({ headers }) => {
    const [, subject, right] = /^Bearer (\w+):(\w+)$/.exec(headers.get('authorization') ?? '') ?? []
    return subject === undefined
      ? undefined
      : { subject, projects: { house: right === 'write' ? 'write' : 'read' }, readsSealedSecrets: right === 'sealed' }
  },
  authorize: claimAuthorize,
}

interface Asked {
  readonly status: number
  readonly json: { readonly code?: string; readonly message?: string }
  readonly text: string
  readonly headers: Headers
}

type Ask = (path: string, body?: unknown, token?: string) => Promise<Asked>

async function server(
  t: TestContext,
  extension = automation(),
): Promise<{ readonly ask: Ask; readonly upload: () => Promise<void> }> {
  const service = createObjectService({ backend: memoryBackend(), access: ACCESS, extensions: [extension, archives()] })
  t.after(() => service.close({ graceMs: 0 }))
  const ask: Ask = async (path, body, token = 'ada:write') => {
    const init: RequestInit = {
      headers: {
        Authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      },
      ...(body === undefined ? {} : { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) }),
    }
    const response = await service.fetch(new Request(`http://in.process/api/v1/projects${path}`, init))
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: isJson ? (JSON.parse(text) as Asked['json']) : {},
    }
  }
  return {
    ask,
    upload: () =>
      uploadObjects(service, 'house', [
        { id: 'root' },
        { id: 'half', a: { referencedId: 'gone', speckle_type: 'reference' } },
      ]),
  }
}

test('exporting needs the read right, and exporting secrets or importing needs the write right', async (t) => {
  const { ask, upload } = await server(t)
  await upload()
  const paths = ['/house/export/objects', '/house/export/automations', `/house/import/marks/${ID}`, '']
  for (const path of paths) assert.equal((await ask(path, undefined, 'nobody')).status, 401, path)
  assert.equal((await ask('/house/export/objects', undefined, 'ada:read')).status, 200)
  for (const path of paths.slice(1, 3)) assert.equal((await ask(path, undefined, 'ada:read')).status, 403, path)
  assert.equal((await ask('/house/import/records', [], 'ada:read')).status, 403)
  assert.equal((await ask(`/house/import/artifacts/${ID}`, 'x', 'ada:read')).status, 403)
  assert.equal((await ask('/others/export/objects')).status, 403)
  assert.equal((await ask('')).text, '"house"\n')
})

test('a token for sealed secrets may read them, and nothing else that needs the write right', async (t) => {
  const { ask, upload } = await server(t)
  await upload()
  const token = 'ada:sealed'
  assert.equal((await ask('/house/export/automations', undefined, token)).status, 200)
  for (const path of ['/house/export/automations?sealedFor=MCowBQYDK2VuAyEA', `/house/import/marks/${ID}`])
    assert.equal((await ask(path, undefined, token)).status, 403, path)
  assert.equal((await ask('/others/export/automations', undefined, token)).status, 403)
  assert.equal((await ask('/house/import/records', [], token)).status, 403)
})

test('a run may neither export nor import', async (t) => {
  const statuses: number[] = []
  const asking: { as?: Ask } = {}
  const executor = inProcess(async ({ runFile, backend }) => {
    const token = runFile.speckleToken
    for (const path of ['/house/export/automations', `/house/import/marks/${ID}`])
      statuses.push((await asking.as?.(path, undefined, token))?.status ?? 0)
    statuses.push((await asking.as?.('/house/import/records', [], token))?.status ?? 0)
    await backend.report({ sequence: 1, status: 'succeeded', message: '' })
  })
  const extension = automation({ functions: [definition(executor)] })
  const { ask, upload } = await server(t, extension)
  asking.as = ask
  await upload()
  const house = extension.project('house')
  const { id: modelId } = await house.models.create({ name: 'House' })
  await house.versions.create(modelId, { rootObjectId: 'root', message: '' })
  const inputs = { name: 'Check', functionId: 'checker', modelId, inputs: {}, trigger: 'manual' } as const
  await house.runs.start((await house.automations.create(inputs)).id)
  await extension.idle()
  assert.deepEqual(statuses, [403, 403, 403])
})

test('invalid records are refused with a message', async (t) => {
  const { ask, upload } = await server(t)
  await upload()
  const refused = async (records: unknown, status: number, message: RegExp): Promise<void> => {
    const { status: answered, json } = await ask('/house/import/records', records)
    assert.deepEqual([answered, message.test(json.message ?? '')], [status, true], json.message)
  }
  await refused({}, 400, /must be a list/)
  await refused([{ kind: 'thing', value: {} }], 400, /\[0\]\.kind must be one of pin, model, version/)
  await refused([{ kind: 'model', value: { ...MODEL, name: '' } }], 400, /name/)
  await refused([{ kind: 'model', value: { ...MODEL, extra: 1 } }], 400, /"extra"/)
  await refused([{ kind: 'version', value: VERSION }], 404, /no model/)
  assert.equal((await ask('/house/import/records', [{ kind: 'model', value: MODEL }])).status, 200)
  await refused([{ kind: 'version', value: { ...VERSION, rootObjectId: 'nobody' } }], 409, /"nobody" is not held/)
  await refused(
    [{ kind: 'version', value: { ...VERSION, rootObjectId: 'half' } }],
    409,
    /1 objects below "half".*"gone"/,
  )
  await refused([{ kind: 'version', value: { ...VERSION, id: `ffff${ID.slice(4)}` } }], 400, /a day ahead/)
  assert.equal((await ask('/house/import/records', [{ kind: 'version', value: VERSION }])).status, 200)
  await upload()
  await refused([{ kind: 'version', value: { ...VERSION, rootObjectId: 'half' } }], 409, /another root/)
  await refused([{ kind: 'automation', value: { ...AUTOMATION, projects: ['others'] } }], 403, /"others"/)
  assert.equal((await ask('/house/import/records', [{ kind: 'automation', value: AUTOMATION }])).status, 200)
  await refused([{ kind: 'automation', value: { ...AUTOMATION, functionId: 'other' } }], 409, /another function/)
  await refused([{ kind: 'run', value: { id: ID, status: 'running' } }], 400, /value/)
})

test('an unknown cursor is refused, and a project without objects has no page', async (t) => {
  const { ask, upload } = await server(t)
  assert.deepEqual([(await ask('/house/export/objects')).status, (await ask('')).text], [404, ''])
  await upload()
  const { text, headers } = await ask('/house/export/objects')
  assert.equal(text.split('\n')[0], 'root\t{"id":"root"}')
  const point = (headers.get('stowage-end') ?? '').split('.').slice(-2).join('.')
  assert.match(point, /^1\.[0-9a-f]{16}$/)
  assert.match((await ask(`/house/export/objects?after=1.1.1.0.0.${point}`)).text, /^half\t[^\n]*\n$/)
  assert.equal((await ask(`/house/export/objects?after=1.1.2.0.0.${point}`)).text, '')
  const elsewhere = point.replace(/.$/, (last) => (last === '0' ? '1' : '0'))
  for (const cursor of [`2.0.0.0.0.${point}`, `1.1.1.0.0.${elsewhere}`])
    for (const query of [`after=${cursor}`, `after=1.1.1.0.0.${point}&end=${cursor}`])
      assert.equal((await ask(`/house/export/objects?${query}`)).json.code, 'conflict', query)
  for (const after of ['', '1', 'x.y.z', '1.1.1.0.0', `${'f'.repeat(9)}.0.0.0.0.${point}`])
    assert.equal((await ask(`/house/export/objects?after=${after}`)).status, 400, after)
})

test('an artifact must match its checksum', async (t) => {
  const { ask, upload } = await server(t)
  await upload()
  const path = `/house/import/artifacts/${ID}`
  const sha256 = '2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881'
  const query = (sum: string): string => `?runId=${ID}&name=report.txt&sha256=${sum}`
  assert.equal((await ask(`${path}${query('0'.repeat(64))}`, 'x')).status, 400)
  assert.equal((await ask(`${path}${query('short')}`, 'x')).status, 400)
  assert.equal((await ask(path, 'x')).status, 400)
  assert.deepEqual((await ask(`${path}${query(sha256)}`, 'x')).json, { outcome: 'created' })
  assert.deepEqual((await ask(`${path}${query(sha256)}`, 'x')).json, { outcome: 'unchanged' })
  assert.equal((await ask(`/house/artifacts/${ID}`)).text, 'x')
})
