import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { openApiDocument } from '../../src/openapi/document.ts'
import { DOOR, PROJECT_ID, ROOT, ROOT_ID, WALL } from '../../src/openapi/objects/examples.ts'
import { jsonUpload, served } from '../http/served.ts'
import { ask, type Answered, type Sent } from '../mounts/ask.ts'
import { eventually } from '../support/patience.ts'
import { Conformance } from './conformance.ts'
import { exampleAnswer, exampleRequests } from './requests.ts'

const conformance = new Conformance(openApiDocument({ server: '/' }))

async function withModel(t: TestContext, cors: boolean): Promise<(sent: Sent) => Promise<Answered>> {
  const { port, service } = await served(
    t,
    cors ? { cors: { origins: ['https://viewer.example'], credentials: true } } : {},
  )
  await service.fetch(new Request(`http://in.process/objects/${PROJECT_ID}`, jsonUpload([ROOT, WALL, DOOR])))
  await eventually(
    async () => 'etag' in (await ask(port, { method: 'HEAD', path: `/objects/${PROJECT_ID}/${ROOT_ID}` })).headers,
    'the graph has a plan',
  )
  return (sent) => ask(port, sent)
}

for (const cors of [false, true]) {
  test(`every example request gets a documented response${cors ? ', also for another origin' : ''}`, async (t) => {
    const send = await withModel(t, cors)
    for (const found of conformance.operations()) {
      for (const { name, sent } of exampleRequests(conformance, found)) {
        const origin: Readonly<Record<string, string>> = cors ? { origin: 'https://viewer.example' } : {}
        const answered = await send({ ...sent, headers: { ...sent.headers, ...origin } })
        const where = `${found.operation.operationId} ${name}`
        // The examples of lists name an id that is not held.
        assert.ok(
          answered.status < 400 || (answered.status === 409 && name === 'strict: strict'),
          `${where}: ${answered.status} ${answered.body}`,
        )
        assert.deepEqual(conformance.problems({ method: found.method, path: sent.path }, answered), [], where)
      }
    }
  })
}

test('responses equal those in the document', async (t) => {
  const send = await withModel(t, false)
  let compared = 0
  for (const found of conformance.operations()) {
    if (found.operation.operationId === 'uploadObjects') continue
    for (const { name, sent } of exampleRequests(conformance, found)) {
      for (const accept of ['application/json', 'text/plain']) {
        const pair = exampleAnswer(
          conformance,
          found,
          name,
          await send({ ...sent, headers: { ...sent.headers, accept } }),
        )
        if (pair === undefined) continue
        assert.deepEqual(pair.given, pair.shown, `${found.operation.operationId} ${name} ${accept}`)
        compared++
      }
    }
  }
  assert.ok(compared >= 16, `${compared} answers`)
})

test('uploads into an empty project get the documented response', async (t) => {
  const found = conformance.operation('uploadObjects')
  for (const { name, sent } of exampleRequests(conformance, found).filter(({ name }) =>
    ['model', 'files', 'compressed'].includes(name),
  )) {
    const { port } = await served(t)
    const pair = exampleAnswer(conformance, found, name, await ask(port, sent))
    assert.deepEqual(pair?.given, pair?.shown, name)
    assert.notEqual(pair, undefined, name)
  }
})
