import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AUTOMATION_AREA } from '../../src/automation-server/schemas/openapi/area.ts'
import {
  AUTOMATION_ID,
  CHANGED_ROOT_ID,
  FUNCTION_ID,
  MODEL_ID,
  REPORTS,
  RUN_ID,
  VERSION_ID,
} from '../../src/automation-server/schemas/openapi/examples.ts'
import { openApiDocument } from '../../src/openapi/document.ts'
import { PROJECT_ID, ROOT_ID, UNKNOWN_ID } from '../../src/openapi/objects/examples.ts'
import type { Example } from '../../src/openapi/description/types.ts'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import { asGuarded } from '../../src/storage/guard.ts'
import { EpochCounter } from '../../src/store/upkeep/epochs.ts'
import { uploadObjects, waiting } from '../automation-server/support.ts'
import { type Answered, describing, type Sent } from '../mounts/ask.ts'
import { type Automated, automatedServer, exampleService } from './automated.ts'
import { bodyText, Conformance, type Found } from './conformance.ts'
import { exampleRequests } from './requests.ts'

/**
 * Every example of automation's part of the document is sent to a server, and every status that the document names is
 * provoked.
 */

const conformance = new Conformance(openApiDocument({ server: '/', areas: [AUTOMATION_AREA] }))
const operations = conformance.operations().filter(({ template }) => template.startsWith('/api/v1/'))
const NOBODY = '0'.repeat(32)
const UNSAFE: ReadonlySet<string> = new Set(['post', 'patch', 'delete'])

let zombies = 0

/** Statuses of operations that were seen. */
const seen = new Set<string>()

/** Whether the answer is as the document has it. */
function check({ template, operation, method }: Found, answered: Answered, name: string): void {
  const where = `${operation.operationId} ${name}: ${answered.status} ${answered.body}`
  assert.deepEqual(conformance.problems({ method, path: template.replaceAll(/\{\w+\}/g, 'x') }, answered), [], where)
  seen.add(`${operation.operationId} ${answered.status}`)
}

/** What the document shows as the answer: to the example of this name, or the only one to requests without a body. */
function shownAnswer(found: Found, name: string, { status, headers }: Answered): Example | undefined {
  const type = (headers['content-type'] ?? '').split(';')[0]
  const examples = conformance.response(found, status).content?.[type]?.examples ?? {}
  return found.operation.requestBody === undefined && name === 'root' ? Object.values(examples)[0] : examples[name]
}

/** The answer with the ids of the document; what was made by this very request has another id in every server. */
function givenAnswer(server: Automated, { headers, body }: Answered, shown: unknown): unknown {
  const text = server.shown(bodyText(headers, body))
  if (!headers['content-type'].startsWith('application/json')) return text
  const given = JSON.parse(text) as { id?: string }
  return given.id === undefined ? given : { ...given, id: (shown as { readonly id: string }).id }
}

test('every example request gets the documented response', async (t) => {
  const shared = await automatedServer(t)
  let compared = 0
  for (const found of operations) {
    for (const { name, sent } of exampleRequests(conformance, found)) {
      const server = UNSAFE.has(found.method) ? await automatedServer(t, { underWay: true }) : shared
      const answered = await server.ask(sent, found.template)
      assert.ok(answered.status < 400, `${found.operation.operationId} ${name}: ${answered.status} ${answered.body}`)
      check(found, answered, name)
      const shown = shownAnswer(found, name, answered)
      if (shown === undefined) continue
      assert.deepEqual(
        givenAnswer(server, answered, shown.value),
        shown.value,
        `${found.operation.operationId} ${name}`,
      )
      compared++
    }
  }
  assert.ok(compared >= 25, `${compared} answers`)
})

test('the data of every event matches the document', async (t) => {
  const { template } = conformance.operation('followRun')
  const server = await automatedServer(t)
  const { body } = await server.ask(
    { path: template.replace('{projectId}', PROJECT_ID).replace('{runId}', RUN_ID) },
    template,
  )
  const events = [
    ...Buffer.from(body, 'latin1')
      .toString()
      .matchAll(/^event: (\w+)\n(?:id: .*\n)?data: (.*)$/gm),
  ]
  const place = ['paths', template, 'get', 'responses', '200', 'content', 'text/event-stream', 'x-events']
  for (const [, name, data] of events)
    assert.deepEqual(conformance.valueProblems([...place, name], JSON.parse(data)), [], name)
  assert.deepEqual(
    new Set(events.map(([, name]) => name)),
    new Set(['log', 'progress', 'annotations', 'outputs', 'status']),
  )
})

type Provocation = (sent: Sent, server: Automated) => Sent | Promise<Sent>

const withHeader =
  (name: string, value: string): Provocation =>
  (sent) => ({ ...sent, headers: { ...sent.headers, [name]: value } })
const withBody =
  (body: unknown): Provocation =>
  (sent) => ({ ...sent, body: JSON.stringify(body) })
/** The last id of the path is one of nobody. */
const ofNobody: Provocation = (sent) => ({
  ...sent,
  path: sent.path.replace(/(?:[0-9a-f]{32}|wall-check)(?!.*(?:[0-9a-f]{32}|wall-check))/, NOBODY),
})
const withRun =
  (run: 'ended' | 'under way'): Provocation =>
  (sent, { endedRunId }) =>
    run === 'ended' ? { ...sent, path: sent.path.replace(RUN_ID, endedRunId) } : sent
/** The project goes away after the token was found good. */
const goneMeanwhile: Provocation = (sent, { faults }) => {
  faults.runReadsLeft = 1
  return sent
}
const full: Provocation = (sent, { faults }) => {
  faults.isFull = true
  return sent
}

const PROVOCATIONS: Readonly<Record<string, Provocation>> = {
  206: withHeader('range', 'bytes=0-9'),
  304: withHeader('if-none-match', '*'),
  400: (sent) => ({ ...sent, path: sent.path.replace(PROJECT_ID, '%ff') }),
  401: withHeader('x-test-who', 'nobody'),
  403: withHeader('x-test-who', 'stranger'),
  404: ofNobody,
  412: withHeader('if-match', '"other"'),
  413: (sent) => ({ ...sent, body: Buffer.alloc(300_000, 0x20) }),
  415: withHeader('content-type', 'text/html'),
  416: withHeader('range', 'bytes=1000000-'),
  500: withHeader('x-test-who', 'broken'),
  507: full,
}

/** The model of the path is deleted. */
const deletedModel: Provocation = async (sent, { extension }) => {
  const { models } = extension.project(PROJECT_ID)
  const { items } = await models.list()
  await models.delete(items[0].id)
  return sent
}
/** Another model, or a version of it, is deleted and cannot be restored since the storage is full. */
const fullWhileDeleted =
  (what: 'model' | 'version'): Provocation =>
  async (sent, server) => {
    const { models, versions } = server.extension.project(PROJECT_ID)
    const { id } = await models.create({ name: 'deleted' })
    const version = await versions.create(id, { rootObjectId: ROOT_ID, message: '' })
    if (what === 'model') await models.delete(id)
    else await versions.delete(id, version.id)
    return full({ ...sent, path: sent.path.replace(MODEL_ID, id).replace(VERSION_ID, version.id) }, server)
  }

/** The project of the path holds nothing. */
const ofNoProject: Provocation = (sent) => ({
  ...sent,
  path: sent.path.replace(`/projects/${PROJECT_ID}/`, '/projects/nobody/'),
})
/** The project was removed and begun anew since. */
const ofEarlierProject: Provocation = (sent) => ({ ...sent, path: `${sent.path}?cursor=ff.1.0` })

/** The id of an object that nothing leads to, old enough to be collected. */
async function makeZombie({ service, backend }: Automated): Promise<string> {
  const id = `zombie ${zombies++}`
  await uploadObjects(service, PROJECT_ID, [{ id }])
  const epochs = new EpochCounter(asGuarded(backend).records, REAL_ENVIRONMENT)
  for (let passed = 0; passed < 2; passed++) await epochs.advance()
  return id
}

const OTHERWISE: Readonly<Record<string, Provocation>> = {
  'collectProject 404': ofNoProject,
  'compactProject 404': ofNoProject,
  'collectObjects 404': ofNoProject,
  'restoreCollected 404': ofNoProject,
  'getUsage 404': ofNoProject,
  'headGetUsage 404': ofNoProject,
  'listUnreferenced 404': ofNoProject,
  'headListUnreferenced 404': ofNoProject,
  'listUnreferenced 409': ofEarlierProject,
  'headListUnreferenced 409': ofEarlierProject,
  'collectProject 507': async (sent, server) => {
    await makeZombie(server)
    return full({ ...sent, body: JSON.stringify({ olderThanMs: 0 }) }, server)
  },
  'collectObjects 507': async (sent, server) =>
    full({ ...sent, body: JSON.stringify({ ids: [await makeZombie(server)] }) }, server),
  'restoreCollected 507': async (sent, server) => {
    await server.service.project(PROJECT_ID).collectObjects([await makeZombie(server)])
    return full(sent, server)
  },
  'followRun 204': withHeader('last-event-id', '999.999'),
  'headFollowRun 204': withHeader('last-event-id', '999.999'),
  'createVersion 409': withBody({ rootObjectId: UNKNOWN_ID, message: '' }),
  'createPin 409': withBody({ rootObjectId: UNKNOWN_ID }),
  'changeModel 409': deletedModel,
  'pruneModel 409': withBody({}),
  'pruneModel 507': async (sent, server) => {
    const { models, versions } = server.extension.project(PROJECT_ID)
    const { id } = await models.create({ name: 'pruned' })
    for (const message of ['', 'second']) await versions.create(id, { rootObjectId: CHANGED_ROOT_ID, message })
    const body = JSON.stringify({ retention: { keepLastCount: 1 } })
    return full({ ...sent, path: sent.path.replace(MODEL_ID, id), body }, server)
  },
  'deleteVersion 409': deletedModel,
  'restoreVersion 409': deletedModel,
  'restoreModel 507': fullWhileDeleted('model'),
  'restoreVersion 507': fullWhileDeleted('version'),
  'createAutomation 404': withBody({
    name: 'a',
    functionId: 'nobody',
    modelId: MODEL_ID,
    inputs: {},
    trigger: 'manual',
  }),
  'createAutomation 409': (sent) => sent,
  'startRun 409': async (sent, { extension }) => {
    const { models, automations } = extension.project(PROJECT_ID)
    const { id: modelId } = await models.create({ name: 'empty' })
    const { id } = await automations.create({
      name: 'a',
      functionId: FUNCTION_ID,
      modelId,
      inputs: { analysis: 'thermal', apiKey: 'k' },
      trigger: 'manual',
    })
    return { ...sent, path: sent.path.replace(AUTOMATION_ID, id) }
  },
  'cancelRun 409': withRun('ended'),
  'rerunRun 409': async (sent, { extension }) => ({
    ...sent,
    path: sent.path.replace(RUN_ID, (await extension.project(PROJECT_ID).runs.list({ status: 'running' })).items[0].id),
  }),
  'reportRun 404': goneMeanwhile,
  'reportRun 409': withBody({ ...REPORTS[2], sequence: 1 }),
  'reportRun 507': (sent, server) => full({ ...sent, body: JSON.stringify(REPORTS[1]) }, server),
  'askLease 404': goneMeanwhile,
  'createRunVersion 404': withBody({ modelId: NOBODY, rootObjectId: ROOT_ID, message: '' }),
  'createRunVersion 409': withBody({ modelId: MODEL_ID, rootObjectId: UNKNOWN_ID, message: '' }),
  'storeArtifact 404': goneMeanwhile,
  'storeArtifact 415': withHeader('content-encoding', 'gzip'),
  'storeArtifact 409': async (sent, server) => {
    assert.equal((await server.ask(sent, '/api/v1/projects/{projectId}/runs/{runId}/artifacts')).status, 201)
    return sent
  },
}

/** What only a server that was told so answers. */
const ELSEWHERE: ReadonlySet<string> = new Set(['429', '501', '503'])

async function provoke(server: Automated, found: Found, status: string): Promise<void> {
  const key = `${found.operation.operationId} ${status}`
  const provocation = OTHERWISE[key] ?? PROVOCATIONS[status]
  assert.notEqual(provocation, undefined, `nothing provokes ${key}`)
  const send = async (): Promise<Answered> =>
    server.ask(await provocation(exampleRequests(conformance, found)[0].sent, server), found.template)
  let answered = await send()
  // Whoever else looks at the run in that moment takes the one look that was left for its token.
  for (let round = 0; provocation === goneMeanwhile && answered.status === 401 && round < 50; round++)
    answered = await send()
  Object.assign(server.faults, { isFull: false, runReadsLeft: Infinity })
  assert.equal(String(answered.status), status, `${key}: ${answered.body}`)
  check(found, answered, status)
}

const AUTOMATIONS_MAX: Readonly<Record<string, number>> = { createAutomation: 1 }

test('every documented error occurs as documented', async (t) => {
  const limits = { reportBytesMax: 10_000, artifactBytesMax: 1_000, artifactsMax: 1 }
  const shared = await automatedServer(t, { underWay: true, limits })
  for (const found of operations) {
    for (const status of Object.keys(found.operation.responses)) {
      if (Number(status) < 300 && !['204', '206'].includes(status)) continue
      if (
        found.method === 'options' ||
        (['deleteAutomation', 'deletePin'].includes(found.operation.operationId) && status === '204') ||
        ELSEWHERE.has(status)
      )
        continue
      const server =
        ['404', '409'].includes(status) && UNSAFE.has(found.method)
          ? await automatedServer(t, {
              underWay: true,
              limits: { ...limits, automationsMax: AUTOMATIONS_MAX[found.operation.operationId] ?? 2 },
            })
          : shared
      await provoke(server, found, status)
    }
  }
})

test('a closing service says so on every path', async (t) => {
  const server = await automatedServer(t)
  await server.service.close({ graceMs: 0 })
  for (const found of operations.filter(({ operation }) => '503' in operation.responses)) {
    const {
      method = 'GET',
      path,
      headers = {},
      body,
    } = server.real(exampleRequests(conformance, found)[0].sent, found.template)
    const response = await server.service.fetch(
      new Request(`http://in.process${path}`, {
        method,
        headers: { ...headers, authorization: 'x' },
        ...(body === undefined ? {} : { body: Buffer.from(body) }),
      }),
    )
    const answered = { status: response.status, headers: describing(response.headers), body: await response.text() }
    assert.equal(answered.status, 503, found.operation.operationId)
    check(found, answered, 'closing')
  }
})

test('an account over its rate gets 429 on every path', async (t) => {
  const server = await automatedServer(t)
  const rate = { requestRate: { requestsPerSecond: 0.001, burst: 1 } }
  const { service } = exampleService({ ...server.backend }, waiting, {}, rate)
  t.after(() => service.close({ graceMs: 0 }))
  await service.fetch(new Request('http://in.process/objects/p/none'))
  for (const found of operations.filter(({ operation }) => '429' in operation.responses)) {
    const sent = server.real(exampleRequests(conformance, found)[0].sent, found.template)
    const { method = 'GET', path, headers = {}, body } = sent
    const response = await service.fetch(
      new Request(`http://in.process${path}`, {
        method,
        headers: { ...headers, authorization: 'x' },
        ...(body === undefined ? {} : { body: Buffer.from(body) }),
      }),
    )
    const answered = { status: response.status, headers: describing(response.headers), body: await response.text() }
    assert.equal(answered.status, 429, found.operation.operationId)
    check(found, answered, 'too often')
  }
})

test('a service without a secret key refuses secrets', async (t) => {
  const server = await automatedServer(t)
  const { service } = exampleService({ ...server.backend }, waiting, { secretKeys: [] })
  t.after(() => service.close({ graceMs: 0 }))
  for (const operationId of ['createAutomation', 'changeAutomation']) {
    const found = conformance.operation(operationId)
    const sent =
      exampleRequests(conformance, found).find(({ name }) => ['versions', 'inputs'].includes(name))?.sent ??
      assert.fail(operationId)
    const { path, headers = {}, body = '' } = server.real(sent, found.template)
    const response = await service.fetch(
      new Request(`http://in.process${path}`, { method: found.method.toUpperCase(), headers, body: Buffer.from(body) }),
    )
    const answered = { status: response.status, headers: describing(response.headers), body: await response.text() }
    assert.equal(answered.status, 501, answered.body)
    check(found, answered, 'keyless')
  }
})

test('a HEAD request takes no event stream and no range of a file', async (t) => {
  const server = await automatedServer(t, { limits: { eventStreamsMax: 1 } })
  for (const [operationId, headers] of [
    ['headFollowRun', {}],
    ['headFollowRun', {}],
    ['followRun', {}],
    ['followRun', {}],
    ['headGetArtifact', { range: 'bytes=0-3' }],
    ['headGetArtifact', { range: 'bytes=1000000-' }],
  ] as const) {
    const found = conformance.operation(operationId)
    const answered = await server.ask({ ...exampleRequests(conformance, found)[0].sent, headers }, found.template)
    assert.equal(answered.status, 200, operationId)
    check(found, answered, 'alone')
  }
})

test('every status of every operation occurred', () => {
  const documented = operations.flatMap(({ operation }) =>
    Object.keys(operation.responses).map((status) => `${operation.operationId} ${status}`),
  )
  assert.deepEqual(
    documented.filter((one) => !seen.has(one)),
    [],
  )
})
