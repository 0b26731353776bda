import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { type TestContext, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { createObjectService, type ObjectService, openAccess, StowageError } from '../../src/index.ts'
import { PlainObjectStore } from './plain-object-store.ts'
import { errorOf, idList, jsonUpload, openService } from './served.ts'
import { listenUntilEnd } from '../support/listen.ts'

async function listening(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  return (await listenUntilEnd(t, server)).url
}

type Parse = (bytes: Buffer) => unknown

/** What a body parser of a host does before anybody else sees the request. */
function behindParser(service: ObjectService, parse: Parse): RequestListener {
  return (req: IncomingMessage & { body?: unknown }, res: ServerResponse) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => {
      req.body = parse(Buffer.concat(chunks))
      service.node(req, res)
    })
  }
}

const parseJson: Parse = (bytes) => JSON.parse(bytes.toString()) as unknown

test("a body that a host's parser read is used if nothing is lost, and is a clear error otherwise", async (t) => {
  const service = openService()
  t.after(() => service.close({ graceMs: 0 }))
  const parsed = await listening(t, behindParser(service, parseJson))
  const raw = await listening(
    t,
    behindParser(service, (bytes) => bytes),
  )
  const text = await listening(
    t,
    behindParser(service, (bytes) => bytes.toString()),
  )
  const dropped = await listening(
    t,
    behindParser(service, () => undefined),
  )
  const upload = jsonUpload([{ id: 'a', n: 1 }])
  assert.equal((await fetch(`${raw}/objects/p`, upload)).status, 200)
  assert.equal((await fetch(`${text}/objects/p`, jsonUpload([{ id: 'b' }]))).status, 200)
  // Parsed numbers have lost their spelling; storing them anew would change what was sent.
  for (const url of [parsed, dropped]) {
    const refused = await errorOf(await fetch(`${url}/objects/p`, upload))
    assert.deepEqual([refused.status, refused.code], [500, 'body_consumed'])
    assert.match(refused.message, /before the parser/)
  }
  for (const url of [parsed, raw, text]) {
    assert.deepEqual(await (await fetch(`${url}/api/diff/p`, idList(['a', 'c']))).json(), { a: true, c: false })
    assert.equal(
      await (await fetch(`${url}/api/v2/projects/p/object-stream/`, idList(['a'], 'objectIds'))).text(),
      'a\t{"id":"a","n":1}\n',
    )
  }
  assert.equal((await errorOf(await fetch(`${dropped}/api/diff/p`, idList(['a'])))).code, 'body_consumed')
})

test('a form that the host parsed and a body that it inflated are accepted as they are', async (t) => {
  const service = openService()
  t.after(() => service.close({ graceMs: 0 }))
  const url = await listening(
    t,
    behindParser(service, (bytes) => Object.fromEntries(new URLSearchParams(bytes.toString()))),
  )
  const form = await fetch(`${url}/api/diff/p`, { method: 'POST', body: new URLSearchParams({ objects: '["a"]' }) })
  assert.deepEqual(await form.json(), { a: false })
  const inflated = await listening(
    t,
    behindParser(service, () => Buffer.from('[{"id":"z"}]')),
  )
  const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
  assert.equal(
    (await fetch(`${inflated}/objects/p`, { method: 'POST', headers, body: gzipSync('[{"id":"z"}]') })).status,
    200,
  )
})

test('unknown paths are passed to the host, and with a prefix only paths below it are served', async (t) => {
  const service = openService({ prefix: '/models' })
  t.after(() => service.close({ graceMs: 0 }))
  const url = await listening(t, (req, res) => service.node(req, res, () => res.end('the host')))
  assert.equal(await (await fetch(`${url}/objects/p/a`)).text(), 'the host')
  assert.equal((await errorOf(await fetch(`${url}/models/objects/p/a`))).code, 'not_found')
  assert.equal((await errorOf(await service.fetch(new Request('http://x/objects/p/a')))).code, 'route_not_found')
})

test("errors: 'next' passes errors on with the status of a response", async (t) => {
  const told: StowageError[] = []
  const service = openService({ errors: 'next', onError: (error) => told.push(error) })
  t.after(() => service.close({ graceMs: 0 }))
  const url = await listening(t, (req, res) =>
    service.node(req, res, (error) => {
      assert.ok(error instanceof StowageError)
      res.writeHead(error.statusCode).end(`host: ${error.code}`)
    }),
  )
  assert.equal(await (await fetch(`${url}/objects/p/a`)).text(), 'host: not_found')
  await assert.rejects(
    service.fetch(new Request('http://x/objects/p/a')),
    (error) => error instanceof StowageError && error.code === 'not_found',
  )
  const alone = await listening(t, (req, res) => service.node(req, res))
  assert.equal((await errorOf(await fetch(`${alone}/objects/p/a`))).code, 'not_found')
  assert.equal(told.length, 3)
})

test('headers of the host stay, and Vary is merged', async (t) => {
  const service = openService()
  t.after(() => service.close({ graceMs: 0 }))
  const url = await listening(t, (req, res) => {
    res.setHeader('Vary', 'Origin')
    res.setHeader('X-Host', 'yes')
    service.node(req, res)
  })
  await (await fetch(`${url}/objects/p`, jsonUpload([{ id: 'a' }]))).arrayBuffer()
  const { headers } = await fetch(`${url}/objects/p/a`)
  assert.deepEqual(
    [headers.get('vary'), headers.get('x-host')],
    ['Origin, Accept, Accept-Encoding, Authorization', 'yes'],
  )
})

test("endpoints accept parameters that the host's router has matched and decoded", async (t) => {
  const service = openService()
  t.after(() => service.close({ graceMs: 0 }))
  const { endpoints } = service
  assert.deepEqual(
    Object.values(endpoints).map(({ method, path }) => `${method} ${path}`),
    [
      'POST /api/diff/:projectId',
      'POST /objects/:projectId',
      'GET /objects/:projectId/:objectId/single',
      'POST /api/getobjects/:projectId',
      'GET /objects/:projectId/:objectId',
      'POST /api/v2/projects/:projectId/object-stream',
    ],
  )
  await endpoints.upload.fetch(new Request('http://x/put', jsonUpload([{ id: 'a/b' }])), { projectId: 'p' })
  const single = await endpoints.single.fetch(new Request('http://x/get'), { projectId: 'p', objectId: 'a/b' })
  assert.deepEqual(await single.json(), { id: 'a/b' })
  assert.equal(
    (await errorOf(await endpoints.single.fetch(new Request('http://x/get'), { projectId: 'p', objectId: '' }))).code,
    'invalid_id',
  )
  const url = await listening(t, (req, res) => endpoints.graph.node(req, res, { projectId: 'p', objectId: 'a/b' }))
  assert.deepEqual(await (await fetch(url)).json(), [{ id: 'a/b' }])
})

test("access receives the host's request under node, and the passed context under fetch", async (t) => {
  const hosts: unknown[] = []
  const service = createObjectService({
    store: new PlainObjectStore(),
    access: {
      authenticate: ({ host, path, method }) => {
        hosts.push(host)
        return { subject: `${method} ${path}` }
      },
      authorize: (principal, projectId, right) =>
        principal.subject === `GET /objects/p/a%2Fb` && projectId === 'p' && right === 'read',
    },
  })
  t.after(() => service.close({ graceMs: 0 }))
  const url = await listening(t, service.node)
  assert.equal((await fetch(`${url}/objects/p/a%2Fb?x=1`)).status, 404)
  assert.equal((await service.fetch(new Request('http://x/objects/p/a%2Fb'), 'passed')).status, 404)
  assert.ok((hosts[0] as IncomingMessage).socket !== undefined && hosts[1] === 'passed')
  assert.equal((await errorOf(await fetch(`${url}/objects/q/a`))).code, 'forbidden')
  assert.ok(openAccess().authorize({ subject: '' }, 'p', 'write'))
})
