import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect, createServer, type OutgoingHttpHeaders } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import Fastify from 'fastify'
import { fastifyMount } from '../../src/mounts/fastify.ts'
import { openService } from '../http/served.ts'
import { LIMITS } from '../mounts/requests.ts'

const UPLOAD = { ':method': 'POST', ':path': '/models/objects/p', 'content-type': 'application/json' }

void test('HTTP/2 gets the same responses from a Node server and from Fastify', async (t) => {
  const service = openService({ limits: LIMITS })
  t.after(() => service.close({ graceMs: 0 }))
  const fastify = Fastify({ http2: true })
  await fastify.register(fastifyMount, { service, prefix: '/models' })
  await fastify.ready()
  const plain = createServer((req, res) => {
    void service.serve({
      req: req as unknown as IncomingMessage,
      res: res as unknown as ServerResponse,
      mountPoint: '/models',
    })
  })
  for (const server of [plain, fastify.server]) {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    t.after(() => {
      session.destroy()
      server.close()
    })
    const ask = async (headers: OutgoingHttpHeaders, body?: string): Promise<readonly [number, string]> => {
      const stream = session.request(headers)
      const responded = once(stream, 'response') as Promise<[{ ':status': number }]>
      stream.end(body)
      const chunks: Buffer[] = []
      for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk)
      return [(await responded)[0][':status'], Buffer.concat(chunks).toString()]
    }
    assert.equal((await ask(UPLOAD, '[{"id":"a/b"}]'))[0], 200)
    assert.deepEqual(await ask({ ':path': '/models/objects/p/a%2Fb' }), [200, '[{"id":"a/b"}]'])
    const [status, text] = await ask(UPLOAD, ' '.repeat(2 * LIMITS.requestBytesMax))
    assert.deepEqual([status, (JSON.parse(text) as { code: string }).code], [413, 'request_too_large'])
    assert.match((await ask({ ':path': '/models/objects/p/%ff' }))[1], /"code":"invalid_request"/)
  }
})
