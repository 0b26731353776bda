import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import type { StoredObject } from '../../src/index.ts'
import { closesByItself, eventually } from '../support/patience.ts'
import { PlainObjectStore } from './plain-object-store.ts'
import { errorOf, idList, jsonUpload, openService, rawExchange, served } from './served.ts'
import { WatchedStore } from './watched-store.ts'

const LARGE = Array.from({ length: 32 }, (_, n) => ({ id: `o${n}`, text: 'x'.repeat(500_000) }))

async function sending(port: number, text: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  socket.write(text)
  return socket
}

const UPLOAD_HEAD =
  'POST /objects/p HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'

test('a client that disconnects during an upload leaves nothing', async (t) => {
  const store = new WatchedStore()
  const { port, url, service } = await served(t, { store })
  const socket = await sending(port, `${UPLOAD_HEAD}11\r\n[{"id":"a"},{"id"\r\n`)
  await eventually(() => store.puts === 1, 'the upload begins')
  socket.destroy()
  await eventually(() => store.puts === 0, 'the upload ends')
  assert.deepEqual(await (await fetch(`${url}/api/diff/p`, idList(['a']))).json(), { a: false })
  await closesByItself(service)
})

test('a client that disconnects while its graph is walked or sent frees everything', async (t) => {
  const store = new WatchedStore()
  const { port, url, service } = await served(t, { store })
  await (
    await fetch(`${url}/objects/p`, jsonUpload([{ id: 'root', c: LARGE.map(({ id }) => ({ referencedId: id })) }]))
  ).arrayBuffer()
  await (await fetch(`${url}/objects/p`, jsonUpload(LARGE))).arrayBuffer()
  store.waits = true
  const walking = await sending(port, 'GET /objects/p/root HTTP/1.1\r\nHost: x\r\n\r\n')
  await eventually(() => store.gets === 1, 'the walk begins')
  walking.destroy()
  await eventually(() => store.gets === 0, 'the walk ends')
  store.waits = false
  for (const coding of ['identity', 'gzip']) {
    const reading = await sending(port, `GET /objects/p/root HTTP/1.1\r\nHost: x\r\nAccept-Encoding: ${coding}\r\n\r\n`)
    await once(reading, 'data')
    reading.destroy()
    await eventually(() => store.gets === 0, `sending ends (${coding})`)
  }
  await closesByItself(service)
})

test('the fetch core: canceling the body, aborting the request and dropping a HEAD free everything', async () => {
  const store = new WatchedStore()
  const service = openService({ store })
  await service.fetch(new Request('http://x/objects/p', jsonUpload(LARGE)))
  const body = idList(LARGE.map(({ id }) => id))
  const answer = await service.fetch(new Request('http://x/api/getobjects/p', body))
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader()
  await reader.read()
  assert.equal(store.gets, 1)
  await reader.cancel()
  await eventually(() => store.gets === 0, 'cancelling ends it')
  const controller = new AbortController()
  const aborted = await service.fetch(new Request('http://x/api/getobjects/p', { ...body, signal: controller.signal }))
  const second = (aborted.body as ReadableStream<Uint8Array>).getReader()
  await second.read()
  controller.abort()
  await eventually(() => store.gets === 0, 'aborting ends it')
  await assert.rejects(async () => second.read())
  assert.equal((await service.fetch(new Request('http://x/objects/p/o1', { method: 'HEAD' }))).status, 200)
  await closesByItself(service)
})

test('a stalled reader is disconnected, on both cores', async (t) => {
  const store = new WatchedStore()
  const { port, url } = await served(t, { store, stallTimeoutMs: 300 })
  await (await fetch(`${url}/objects/p`, jsonUpload(LARGE))).arrayBuffer()
  const body = JSON.stringify({ objects: LARGE.map(({ id }) => id) })
  const socket = await sending(
    port,
    `POST /api/getobjects/p HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
  await once(socket, 'readable')
  assert.equal(store.gets, 1, 'the answer is longer than what the connection takes up')
  await eventually(() => store.gets === 0, 'the stalled answer is given up')
  socket.destroy()
  const service = openService({ store, stallTimeoutMs: 50 })
  const answer = await service.fetch(new Request('http://x/api/getobjects/p', idList(LARGE.map(({ id }) => id))))
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader()
  await reader.read()
  await eventually(() => store.gets === 0, 'the stalled stream is given up')
  await assert.rejects(async () => reader.read(), /nothing was read/)
  await closesByItself(service)
})

test('a stalled body is refused', async (t) => {
  const { port, service } = await served(t, { stallTimeoutMs: 100 })
  assert.match(
    await rawExchange(port, [`${UPLOAD_HEAD}5\r\n[{"id\r\n`]),
    /^HTTP\/1\.1 400 [^]*"code":"request_aborted"\}$/,
  )
  const stalled = new ReadableStream<Uint8Array>({ start: (controller) => controller.enqueue(Buffer.from('[')) })
  const init = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: stalled,
    duplex: 'half',
  } as RequestInit
  assert.equal((await errorOf(await service.fetch(new Request('http://x/objects/p', init)))).code, 'request_aborted')
})

test('a server that stalled itself reads what arrived meanwhile', async (t) => {
  const store = new WatchedStore()
  const { port } = await served(t, { store, stallTimeoutMs: 60_000 })
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const socket = await sending(port, `${UPLOAD_HEAD}11\r\n[{"id":"a"},{"id"\r\n`)
  const answered = once(socket.setEncoding('latin1'), 'data')
  while (store.puts === 0) await new Promise((resolve) => setImmediate(resolve))
  // As when the process has no processor for longer than a stall may last: the bytes are there, and so is the end of
  // the time.
  socket.write('5\r\n:"b"}\r\n1\r\n]\r\n0\r\n\r\n')
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)
  t.mock.timers.tick(60_000)
  assert.match(String((await answered)[0]), /^HTTP\/1\.1 200 /)
  t.mock.timers.reset()
  socket.destroy()
})

test('an error after the first byte destroys the connection and is reported to the host', async (t) => {
  class Breaking extends PlainObjectStore {
    #calls = 0
    override async *get(
      projectId: string,
      ids: readonly string[],
      options: { readonly signal: AbortSignal },
    ): AsyncGenerator<readonly StoredObject[]> {
      if (this.#calls++ > 0) throw new Error('the disk is gone')
      yield* super.get(projectId, ids, options)
    }
  }
  const told: string[] = []
  const { url } = await served(t, { store: new Breaking(), onError: (error) => told.push(error.code) })
  await (await fetch(`${url}/objects/p`, jsonUpload(LARGE.slice(0, 3)))).arrayBuffer()
  const answer = await fetch(`${url}/api/getobjects/p`, idList(LARGE.map(({ id }) => id)))
  assert.equal(answer.status, 200)
  await assert.rejects(answer.text())
  assert.deepEqual(told, ['internal'])
})
