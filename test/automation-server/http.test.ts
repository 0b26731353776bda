import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { contentDisposition } from '../../src/automation-server/http/artifacts.ts'
import { SecretBox } from '../../src/automation-server/domain/secrets.ts'
import { automation } from '../../src/automation-server/index.ts'
import { claimAuthorize, createObjectService, openAccess, type Principal } from '../../src/index.ts'
import { PlainObjectStore } from '../http/plain-object-store.ts'
import { behindPort } from '../http/served.ts'
import { sharing } from '../store/failures.ts'
import { eventually } from '../support/patience.ts'
import {
  automated,
  type Asked,
  definition,
  inProcess,
  reporting,
  SECRET_KEY,
  uploadObjects,
  waiting,
  withAutomation,
  withVersion,
} from './support.ts'

const NOBODY = '0'.repeat(32)

function refused({ status, json }: Asked): readonly [number, string] {
  return [status, json.code]
}

test('bodies may contain only known members', async (t) => {
  const { ask, ...fixture } = automated(t, { functions: [definition(waiting)] })
  const { modelId } = await withVersion(fixture)
  const automation = { name: 'Check', functionId: 'checker', modelId, inputs: {}, trigger: 'manual' }
  const wrong: readonly (readonly [string, string, unknown, number, string])[] = [
    ['POST', 'p/models', {}, 400, 'invalid_request'],
    ['POST', 'p/models', { name: 'a', color: 'red' }, 400, 'invalid_request'],
    ['POST', 'p/models', { name: '' }, 400, 'invalid_request'],
    ['POST', 'p/models', { name: 'two\nlines' }, 400, 'invalid_request'],
    ['POST', 'p/models', '{', 400, 'invalid_json'],
    ['POST', 'p/models', { name: 'x'.repeat(300_000) }, 413, 'request_too_large'],
    ['POST', `p/models/${modelId}/versions`, { rootObjectId: '', message: '' }, 400, 'invalid_id'],
    ['POST', `p/models/${modelId}/versions`, { rootObjectId: 'gone', message: '' }, 409, 'objects_missing'],
    ['POST', `p/models/${NOBODY}/versions`, { rootObjectId: 'root', message: '' }, 404, 'not_found'],
    ['GET', 'p/models/house', undefined, 400, 'invalid_id'],
    ['POST', 'p/automations', { ...automation, command: ['rm'] }, 400, 'invalid_request'],
    ['POST', 'p/automations', { ...automation, functionId: 'nobody' }, 404, 'not_found'],
    ['POST', 'p/automations', { ...automation, modelId: NOBODY }, 404, 'not_found'],
    ['POST', 'p/automations', { ...automation, inputs: { tolerance: -1 } }, 400, 'invalid_inputs'],
    ['POST', 'p/automations', { ...automation, trigger: 'always' }, 400, 'invalid_request'],
    ['GET', 'p/runs?limit=0', undefined, 400, 'invalid_request'],
    ['GET', 'p/runs?limit=1001', undefined, 400, 'invalid_request'],
    ['GET', 'p/runs?cursor=../x', undefined, 400, 'invalid_request'],
    ['GET', 'p/runs?status=lost', undefined, 400, 'invalid_request'],
    ['GET', 'p/runs?color=red', undefined, 400, 'invalid_request'],
    ['GET', `p/runs/${NOBODY}`, undefined, 404, 'not_found'],
    ['GET', `p/artifacts/${NOBODY}`, undefined, 404, 'not_found'],
    ['POST', `p/automations/${NOBODY}/runs`, {}, 404, 'not_found'],
    ['DELETE', `p/automations/${NOBODY}`, undefined, 404, 'not_found'],
    ['DELETE', 'p/models', undefined, 405, 'method_not_allowed'],
  ]
  for (const [method, path, body, status, code] of wrong)
    assert.deepEqual(
      refused(await ask(method, path, body)),
      [status, code],
      `${method} ${path} ${JSON.stringify(body)?.slice(0, 100)}`,
    )
})

test('an unreadable body is refused with the place and a correct form', async (t) => {
  const { ask, ...fixture } = automated(t, { functions: [definition(waiting)] })
  const { modelId } = await withVersion(fixture)
  const automation = { name: 'Check', functionId: 'checker', modelId, inputs: {}, trigger: 'manual' }
  const cases: readonly (readonly [path: string, body: unknown, code: string, message: RegExp])[] = [
    [
      'p/models',
      '{\n  "name": "House",\n  <script>\n}',
      'invalid_json',
      /^the body is not JSON: expected a key in quotes, found "<" \(line 3, column 3, byte 23\)$/,
    ],
    [
      'p/models',
      '{"name":"House"',
      'invalid_json',
      /^the body is not JSON: the text ends before the object does \(line 1, column 16, byte 15\)$/,
    ],
    ['p/models', '"House"', 'invalid_request', /^the body must be an object; it is a string$/],
    ['p/models', [], 'invalid_request', /^the body must be an object; it is a list of 0$/],
    ['p/models', {}, 'invalid_request', /^name must be a string; it is missing$/],
    ['p/models', { name: 5 }, 'invalid_request', /^name must be a string; it is 5$/],
    [
      'p/models',
      { name: 'House', '<b>\u202e': 1 },
      'invalid_request',
      /^the body has the unknown member "<b>\\u202e"; known members are name$/,
    ],
    [
      'p/automations',
      { ...automation, inputs: 'none' },
      'invalid_request',
      /^inputs must be an object; it is a string$/,
    ],
    [
      'p/automations',
      { ...automation, enabled: 'yes' },
      'invalid_request',
      /^enabled must be true or false; it is a string$/,
    ],
    [
      'p/automations',
      { ...automation, trigger: 'always' },
      'invalid_request',
      /^trigger must be one of "version", "manual"; it is "always"$/,
    ],
    [
      'p/automations',
      { ...automation, inputs: { tolerance: 'much' } },
      'invalid_inputs',
      /"tolerance" must be a number/,
    ],
  ]
  for (const [path, body, code, message] of cases) {
    const { json } = await ask('POST', path, body)
    assert.equal(json.code, code, JSON.stringify(body))
    assert.match(json.message, message)
  }
  const notUtf8 = new Request('http://in.process/api/v1/projects/p/models', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: Buffer.from('{"name":"\xff"}', 'latin1'),
  })
  const { code, message } = (await (await fixture.service.fetch(notUtf8)).json()) as {
    readonly code: string
    readonly message: string
  }
  assert.deepEqual([code, message], ['invalid_utf8', 'the body is not UTF-8 (byte 9)'])
})

test('functions show their inputs and check given ones', async (t) => {
  const { ask } = automated(t, { functions: [definition(waiting)] })
  const { json: listed } = await ask('GET', 'p/functions')
  const [view] = listed.items as readonly { readonly id: string; readonly version: string; readonly inputs: unknown }[]
  assert.deepEqual((await ask('GET', 'p/functions/checker')).json, view)
  assert.match(view.version, /^[0-9a-f]{32}$/)
  assert.deepEqual((await ask('POST', 'p/functions/checker/validate', { inputs: { tolerance: 5 } })).json, {
    valid: true,
    issues: [],
  })
  const { json } = await ask('POST', 'p/functions/checker/validate', { inputs: { tolerance: 0, colour: 'red' } })
  assert.equal(json.valid, false)
  assert.deepEqual(
    (json.issues as readonly { readonly path: string }[]).map(({ path }) => path),
    ['tolerance', 'colour'],
  )
  assert.equal((await ask('GET', 'p/functions/nobody')).status, 404)
  const changed = automated(t, { functions: [definition(waiting, { release: '1.0.1' })] })
  assert.notEqual((await changed.ask('GET', 'p/functions/checker')).json.version, view.version)
})

test('an automation can be changed and removed, and a secret sent back as shown stays', async (t) => {
  const inputs: unknown[] = []
  const executor = inProcess(async ({ runFile, backend }) => {
    inputs.push(runFile.functionInputs)
    await backend.report({ sequence: 1, status: 'succeeded', message: '' })
  })
  const { ask, extension, ...fixture } = automated(t, { functions: [definition(executor)] })
  const { modelId } = await withVersion({ ...fixture, extension })
  const { json } = await ask('POST', 'p/automations', {
    name: 'Check',
    functionId: 'checker',
    modelId,
    inputs: { apiKey: 'hush' },
    trigger: 'manual',
  })
  const path = `p/automations/${String(json.id)}`
  const changed = await ask('PATCH', path, {
    name: 'Checked',
    enabled: false,
    inputs: { tolerance: 4, apiKey: '******' },
  })
  assert.deepEqual(
    [changed.json.name, changed.json.enabled, changed.json.inputs],
    ['Checked', false, { tolerance: 4, apiKey: '******' }],
  )
  const started = await ask('POST', `${path}/runs`, {})
  assert.equal(started.status, 201)
  await ask('PATCH', path, { inputs: { apiKey: 'louder' } })
  await ask('POST', `${path}/runs`, {})
  await extension.idle()
  assert.deepEqual(inputs, [
    { tolerance: 4, apiKey: 'hush' },
    { tolerance: 10, apiKey: 'louder' },
  ])
  assert.equal((await ask('POST', `p/runs/${String(started.json.id)}/rerun`)).status, 201)
  await extension.idle()
  assert.deepEqual(inputs[2], inputs[0])
  assert.equal((await ask('DELETE', path)).status, 204)
  assert.equal((await ask('GET', path)).status, 404)
  assert.equal((await ask('GET', `p/runs/${String(started.json.id)}`)).status, 200)
})

test('a text that becomes a secret, or a secret that becomes a text, is never exposed', async (t) => {
  const kept = memoryBackend()
  const inputs: unknown[] = []
  const executor = inProcess(async ({ runFile }) => void inputs.push(runFile.functionInputs))
  const text = { type: 'string' }
  const secret = { type: 'string', format: 'password', writeOnly: true }
  const served = (apiKey: object): ReturnType<typeof automated> =>
    automated(t, {
      backend: sharing(kept),
      functions: [definition(executor, { inputs: { type: 'object', properties: { apiKey } } })],
    })
  const first = served(secret)
  const { modelId } = await withVersion(first)
  const { id } = await first.extension
    .project('p')
    .automations.create({
      name: 'Check',
      functionId: 'checker',
      modelId,
      inputs: { apiKey: 'hush-hush' },
      trigger: 'manual',
    })
  await first.service.close()
  const second = served(text)
  assert.equal(
    (await second.ask('PATCH', `p/automations/${id}`, { inputs: { apiKey: '******' } })).json.inputs['apiKey'],
    '******',
  )
  assert.equal(
    (await second.ask('PATCH', `p/automations/${id}`, { inputs: { apiKey: 'plain' } })).json.inputs['apiKey'],
    'plain',
  )
  await second.service.close()
  const third = served(secret)
  assert.equal(
    (await third.ask('PATCH', `p/automations/${id}`, { inputs: { apiKey: '******' } })).json.inputs['apiKey'],
    '******',
  )
  await third.ask('POST', `p/automations/${id}/runs`, {})
  await third.extension.idle()
  assert.deepEqual(inputs, [{ apiKey: 'plain' }])
})

test('inputs that are too large in total are refused, plain and secret ones, on creation and on change', async (t) => {
  const schema = {
    type: 'object',
    properties: {
      first: { type: 'string' },
      second: { type: 'string' },
      apiKey: { type: 'string', format: 'password', writeOnly: true },
    },
  }
  const { ask, ...fixture } = automated(t, { functions: [definition(waiting, { inputs: schema })] })
  const { modelId } = await withVersion(fixture)
  const create = (inputs: object): Promise<Asked> =>
    ask('POST', 'p/automations', { name: 'ä'.repeat(200), functionId: 'checker', modelId, inputs, trigger: 'manual' })
  const made = await create({ first: 'x'.repeat(29_000), apiKey: 'k'.repeat(22_000) })
  assert.equal(made.status, 201)
  const path = `p/automations/${String(made.json.id)}`
  assert.equal((await ask('POST', `${path}/runs`, {})).status, 201)
  for (const inputs of [{ first: 'x'.repeat(30_000), second: 'x'.repeat(30_000) }, { apiKey: 'k'.repeat(50_000) }]) {
    for (const answer of [await create(inputs), await ask('PATCH', path, { inputs })]) {
      assert.deepEqual(refused(answer), [400, 'invalid_inputs'])
      assert.match(
        answer.json.message,
        /^the inputs cannot be used: the inputs must have 60000 bytes at most together, with secrets sealed; these are \d{5}$/,
      )
    }
  }
})

test('secrets are refused without a key, and stay closed with another key', async (t) => {
  const without = automated(t, { secretKeys: [], functions: [definition(waiting)] })
  const { modelId } = await withVersion(without)
  const automation = { name: 'Check', functionId: 'checker', modelId, inputs: { apiKey: 'hush' }, trigger: 'manual' }
  assert.deepEqual(refused(await without.ask('POST', 'p/automations', automation)), [501, 'not_supported'])
  assert.equal((await without.ask('POST', 'p/automations', { ...automation, inputs: {} })).status, 201)
  const owner = { projectId: 'p', automationId: 'a' }
  const kept = new SecretBox([SECRET_KEY]).seal({ apiKey: 'hush' }, ['apiKey'], owner)
  const newer = { id: 'second', key: new Uint8Array(32).fill(9) }
  assert.deepEqual(new SecretBox([newer, SECRET_KEY]).open(kept, owner), { apiKey: 'hush' })
  assert.throws(() => new SecretBox([newer]).open(kept, owner), { code: 'not_supported' })
  assert.throws(() => new SecretBox([SECRET_KEY]).open(kept, { ...owner, automationId: 'b' }), { code: 'corrupt_data' })
  assert.throws(() => new SecretBox([{ id: 'first', key: newer.key }]).open(kept, owner), { code: 'corrupt_data' })
  assert.throws(() => new SecretBox([{ id: 'short', key: new Uint8Array(16) }]), TypeError)
})

test('readers may read, writers may write, and projects do not see each other', async (t) => {
  const rights: Readonly<Record<string, Principal>> = {
    reader: { subject: 'r', projects: { p: 'read' } },
    writer: { subject: 'w', projects: { p: 'write' } },
    other: { subject: 'o', projects: { q: 'write' } },
  }
  const access = {
    authenticate: ({ headers }: { readonly headers: Headers }) => rights[headers.get('x-who') ?? ''],
    authorize: claimAuthorize,
  }
  const { ask, extension, ...fixture } = automated(t, {
    functions: [definition(reporting({ status: 'succeeded', message: '' }))],
    service: { access },
  })
  const { modelId, versionId } = await withVersion({ ...fixture, extension })
  const as = (who: string) => ({ 'x-who': who })
  const automation = { name: 'Check', functionId: 'checker', modelId, inputs: {}, trigger: 'manual' }
  const { json } = await ask('POST', 'p/automations', automation, as('writer'))
  const { json: run } = await ask('POST', `p/automations/${String(json.id)}/runs`, {}, as('writer'))
  await extension.idle()
  const paths = [
    'p/models',
    `p/models/${modelId}`,
    `p/models/${modelId}/versions/${versionId}`,
    'p/functions',
    'p/automations',
    `p/runs/${String(run.id)}`,
    `p/runs/${String(run.id)}/annotations`,
    `p/runs/${String(run.id)}/logs`,
  ]
  for (const path of paths) {
    assert.equal((await ask('GET', path, undefined, as('reader'))).status, 200, path)
    assert.equal((await ask('GET', path)).status, 401)
    assert.equal((await ask('GET', path, undefined, as('other'))).status, 403)
  }
  const writes: readonly (readonly [string, string, unknown])[] = [
    ['POST', 'p/models', { name: 'x' }],
    ['POST', `p/models/${modelId}/versions`, { rootObjectId: 'root', message: '' }],
    ['POST', 'p/automations', automation],
    ['PATCH', `p/automations/${String(json.id)}`, {}],
    ['DELETE', `p/automations/${String(json.id)}`, undefined],
    ['POST', `p/automations/${String(json.id)}/runs`, {}],
    ['POST', `p/runs/${String(run.id)}/cancel`, undefined],
    ['POST', `p/runs/${String(run.id)}/rerun`, undefined],
  ]
  for (const [method, path, body] of writes)
    assert.equal((await ask(method, path, body, as('reader'))).status, 403, path)
  for (const path of [
    `q/models/${modelId}`,
    `q/automations/${String(json.id)}`,
    `q/runs/${String(run.id)}`,
    `q/runs/${String(run.id)}/events`,
  ])
    assert.equal((await ask('GET', path, undefined, as('other'))).status, 404, path)
})

test('artifacts download as files, whole or in part, and are stored once for each key', async (t) => {
  const { ask, extension, service, ...fixture } = automated(t, {
    functions: [
      definition(waiting, { id: 'waiter' }),
      definition(
        inProcess(async (start, stopped) => {
          token = start.runFile.speckleToken
          await stopped
        }),
      ),
    ],
    limits: { artifactBytesMax: 100_000, artifactsMax: 2 },
  })
  let token = ''
  const { project, automation } = await withAutomation({ ...fixture, service, extension })
  const { id } = await project.runs.start(automation.id)
  await eventually(async () => token !== '', 'the run has its token')
  const { url } = await behindPort(t, service)
  const send = (name: string, body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
    fetch(`${url}/api/v1/projects/p/runs/${id}/artifacts?name=${encodeURIComponent(name)}`, {
      method: 'POST',
      body,
      headers: { Authorization: `Bearer ${token}`, ...headers },
    })
  const key = { 'Idempotency-Key': 'one' }
  const sent = await send('Räume "1".html', '<script>alert(1)</script>', key)
  assert.equal(sent.status, 201)
  const artifact = (await sent.json()) as { id: string; name: string; sizeBytes: number }
  assert.deepEqual([artifact.name, artifact.sizeBytes], ['Räume "1".html', 25])
  assert.deepEqual(await (await send('Räume "1".html', '<script>alert(1)</script>', key)).json(), artifact)
  const at = `${url}/api/v1/projects/p/artifacts/${artifact.id}`
  const whole = await fetch(at)
  assert.equal(await whole.text(), '<script>alert(1)</script>')
  const { headers } = whole
  assert.equal(
    headers.get('content-disposition'),
    `attachment; filename="R_ume _1_.html"; filename*=UTF-8''R%C3%A4ume%20%221%22.html`,
  )
  assert.deepEqual(
    ['content-type', 'x-content-type-options', 'content-security-policy'].map((name) => headers.get(name)),
    ['application/octet-stream', 'nosniff', "sandbox; default-src 'none'"],
  )
  const part = await fetch(at, { headers: { Range: 'bytes=8-12' } })
  assert.deepEqual(
    [part.status, part.headers.get('content-range'), await part.text()],
    [206, 'bytes 8-12/25', 'alert'.slice(0, 5)],
  )
  assert.equal((await fetch(at, { headers: { 'If-None-Match': headers.get('etag') ?? '' } })).status, 304)
  assert.equal((await fetch(at, { headers: { Range: 'bytes=99-' } })).status, 416)
  assert.equal((await fetch(at, { method: 'HEAD' })).headers.get('content-length'), '25')
  const large = await send('large', new Uint8Array(100_001))
  assert.deepEqual([large.status, ((await large.json()) as { code: string }).code], [413, 'artifact_too_large'])
  assert.equal((await send('', 'x')).status, 400)
  assert.equal((await send('packed', 'x', { 'Content-Encoding': 'gzip' })).status, 415)
  assert.equal((await send('../up\n', 'x')).status, 400)
  assert.equal((await send('second', 'x')).status, 201)
  assert.equal((await send('third', 'x')).status, 409)
  assert.equal((await ask('GET', `p/runs/${id}`)).json.artifacts[0]['id'], artifact.id)
})

test('a file name fits in one header and shows the kind of the file', () => {
  const names: readonly (readonly [string, string])[] = [
    ['a";x="b\\c/d', `attachment; filename="a_;x=_b_c_d"; filename*=UTF-8''a%22%3Bx%3D%22b%5Cc%2Fd`],
    ["it's (1)*.csv", `attachment; filename="it's (1)*.csv"; filename*=UTF-8''it%27s%20%281%29%2A.csv`],
    ['plan\u202Efdp.exe', `attachment; filename="planfdp.exe"; filename*=UTF-8''planfdp.exe`],
  ]
  for (const [name, header] of names) assert.equal(contentDisposition(name), header)
})

test('automation needs a backend and belongs to one service', async (t) => {
  assert.throws(
    () => createObjectService({ store: new PlainObjectStore(), access: openAccess(), extensions: [automation()] }),
    TypeError,
  )
  const extension = automation()
  assert.throws(() => extension.project('p'), TypeError)
  const service = createObjectService({ backend: memoryBackend(), access: openAccess(), extensions: [extension] })
  t.after(() => service.close())
  assert.throws(
    () => createObjectService({ backend: memoryBackend(), access: openAccess(), extensions: [extension] }),
    TypeError,
  )
  assert.throws(() => extension.project(''), { code: 'invalid_id' })
  extension.register(definition(waiting))
  assert.throws(() => extension.register(definition(waiting)), TypeError)
  assert.throws(() => extension.register(definition(waiting, { id: '../x' })), TypeError)
  assert.throws(
    () =>
      extension.register(
        definition(waiting, { id: 'nested', inputs: { type: 'object', properties: { a: { type: 'object' } } } }),
      ),
    { code: 'invalid_inputs_schema' },
  )
  assert.throws(() => automation({ limits: { artifactsMax: 0 } }), RangeError)
  await uploadObjects(service, 'p', [{ id: 'root' }])
})
