import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { type ObjectRecord, StowageError } from '../../src/index.ts'
import { openApiDocument } from '../../src/openapi/document.ts'
import { DOOR, PROJECT_ID, ROOT, ROOT_ID, UNKNOWN_ID, WALL } from '../../src/openapi/objects/examples.ts'
import { PlainObjectStore } from '../http/plain-object-store.ts'
import { idList, jsonUpload, type Served, served, type ServedOptions } from '../http/served.ts'
import { ask, type Sent } from '../mounts/ask.ts'
import { eventually } from '../support/patience.ts'
import { Conformance, type Found } from './conformance.ts'
import { exampleRequests } from './requests.ts'

/** Every status that the document names is provoked at least once on its operation. */

const conformance = new Conformance(openApiDocument({ server: '/' }))
const INCOMPLETE_ID = 'incomplete'

/** A store of a host whose objects need more memory than there is. */
class HugeStore extends PlainObjectStore {
  override get(): never {
    throw new StowageError('memory_limit_exceeded', 'this request needs more than the 1000 bytes of memory')
  }
}

interface Provocation {
  readonly options?: () => ServedOptions
  readonly change?: (sent: Sent) => Sent
  readonly before?: (running: Served) => Promise<void>
}

/** A store of a host that takes nothing. */
class RefusingStore extends PlainObjectStore {
  readonly #error: unknown

  constructor(error: unknown) {
    super()
    this.#error = error
  }

  override async put(
    _projectId: string,
    batches: AsyncIterable<readonly ObjectRecord[]>,
  ): Promise<{ inserted: number }> {
    for await (const batch of batches) assert.ok(batch.length > 0)
    throw this.#error
  }
}

const principal = { subject: 'somebody' }
const withHeader =
  (name: string, value: string) =>
  (sent: Sent): Sent => ({ ...sent, headers: { ...sent.headers, [name]: value } })
const withQuery =
  (query: string) =>
  (sent: Sent): Sent => ({ ...sent, path: `${sent.path}?${query}` })
const inPath =
  (from: string, to: string) =>
  (sent: Sent): Sent => ({ ...sent, path: sent.path.replace(from, to) })
const refusing = (error: () => unknown): Provocation => ({ options: () => ({ store: new RefusingStore(error()) }) })

const PROVOCATIONS: Readonly<Record<string, Provocation>> = {
  200: {},
  201: { options: () => ({ uploadStatus: 201 }) },
  204: {},
  206: { change: withHeader('range', 'bytes=0-9') },
  304: { change: withHeader('if-none-match', '*') },
  400: { change: inPath(PROJECT_ID, '%ff') },
  401: { options: () => ({ access: { authenticate: () => undefined, authorize: () => true } }) },
  403: { options: () => ({ access: { authenticate: () => principal, authorize: () => false } }) },
  404: { change: inPath(ROOT_ID, UNKNOWN_ID) },
  406: { change: withHeader('accept-encoding', 'identity;q=0') },
  409: { change: (sent) => withQuery('strict')(inPath(ROOT_ID, INCOMPLETE_ID)(sent)) },
  412: { change: withHeader('if-match', '"other"') },
  413: { options: () => ({ limits: { idListBytesMax: 10, requestBytesMax: 10 } }) },
  415: { change: withHeader('content-type', 'text/html') },
  416: { change: withHeader('range', 'bytes=1000000-') },
  500: {
    options: () => ({
      access: { authenticate: () => principal, authorize: () => Promise.reject(new Error('the host failed')) },
    }),
  },
  429: {
    options: () => ({ requestRate: { requestsPerSecond: 0.01, burst: 1 } }),
    before: async ({ url }) => void (await (await fetch(`${url}/objects/${PROJECT_ID}/none`)).arrayBuffer()),
  },
  501: { options: () => ({ store: new PlainObjectStore() }), change: withQuery('have=x') },
  503: { before: ({ service }) => service.close() },
  507: refusing(() => Object.assign(new Error('full'), { code: 'ENOSPC' })),
}

const huge: Provocation = { options: () => ({ store: new HugeStore() }) }

const OTHERWISE: Readonly<Record<string, Provocation>> = {
  'getSingleObject 413': huge,
  'headSingleObject 413': huge,
  'getObjectWithChildren 413': huge,
  'headObjectWithChildren 413': huge,
  'uploadObjects 409': refusing(
    () => new StowageError('project_removed', 'the project was removed while objects were uploaded to it'),
  ),
  'streamObjects 409': {
    change: (sent) => ({ ...withQuery('strict')(sent), body: idList([UNKNOWN_ID], 'objectIds').body as string }),
  },
}

async function provoke(
  t: TestContext,
  found: Found,
  provocation: Provocation,
): Promise<Awaited<ReturnType<typeof ask>>> {
  const { options = () => ({}), change = (sent) => sent, before } = provocation
  const running = await served(t, options())
  const { service, port } = running
  const model = [ROOT, WALL, DOOR, { id: INCOMPLETE_ID, child: { referencedId: UNKNOWN_ID } }]
  await service.fetch(new Request(`http://in.process/objects/${PROJECT_ID}`, jsonUpload(model)))
  await before?.(running)
  const sent = change(exampleRequests(conformance, found)[0].sent)
  let answered = await ask(port, sent)
  await eventually(async () => {
    const waitsForPlan =
      found.template === '/objects/{projectId}/{objectId}' && answered.status === 200 && !('etag' in answered.headers)
    if (waitsForPlan) answered = await ask(port, sent)
    return !waitsForPlan
  }, 'the graph has a plan')
  return answered
}

for (const found of conformance.operations()) {
  const { method, operation } = found
  test(`${operation.operationId}: every documented status occurs as documented`, async (t) => {
    for (const status of Object.keys(operation.responses)) {
      const provocation = OTHERWISE[`${operation.operationId} ${status}`] ?? PROVOCATIONS[status]
      assert.notEqual(provocation, undefined, `nothing provokes ${status}`)
      const answered = await provoke(t, found, provocation)
      assert.equal(String(answered.status), status, answered.body)
      assert.deepEqual(
        conformance.problems({ method, path: found.template.replaceAll(/\{\w+\}/g, 'x') }, answered),
        [],
        `status ${status}`,
      )
    }
  })
}

test('undocumented paths and methods get 404 and 405', async (t) => {
  const { port } = await served(t)
  for (const [method, path, status] of [
    ['GET', '/', 404],
    ['GET', '/objects', 404],
    ['POST', '/api/diff/', 404],
    ['DELETE', '/objects/p', 405],
    ['PUT', '/objects/p/a', 405],
    ['POST', '/api/openapi.json', 405],
    ['TRACE', '/api/diff/p', 405],
  ] as const) {
    const answered = await ask(port, { method, path })
    assert.equal(answered.status, status, `${method} ${path}`)
    assert.deepEqual(conformance.problems({ method, path }, answered), [], `${method} ${path}`)
  }
})
