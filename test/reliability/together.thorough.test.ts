import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { test, type TestContext } from 'node:test'
import { MB } from '../../src/limits.ts'
import { jsonUpload, type Served, served } from '../http/served.ts'
import { servedFromFolder } from './hosts.ts'

interface Summary {
  readonly objects: number
  readonly created: number
  readonly differing: number
}

const STORAGES = ['memory', 'files'] as const

/**
 * Enough for all that upload at once: who waited too long for memory would be refused, and how long it takes is the
 * disk's affair.
 */
const MEMORY_BYTES_MAX = 1_024 * MB

function openHost(t: TestContext, storage: (typeof STORAGES)[number]): Promise<Served> {
  const service = { memoryBytesMax: MEMORY_BYTES_MAX }
  return storage === 'memory' ? served(t, service) : servedFromFolder(t, { service })
}

/** One request on a connection of its own. */
function alone(
  url: string,
  init: { readonly method?: string; readonly body?: string } = {},
): Promise<{ readonly status: number | undefined; readonly body: string }> {
  return new Promise((resolve, reject) => {
    const agent = new Agent({ keepAlive: false })
    const req = request(
      url,
      { agent, method: init.method ?? 'GET', headers: { 'Content-Type': 'application/json' } },
      (answer) => {
        text(answer).then((body) => resolve({ status: answer.statusCode, body }), reject)
      },
    )
    req.on('error', reject)
    req.end(init.body)
  })
}

const CLIENTS = Array.from({ length: 100 }, (_, client) => client)

function sum(summaries: readonly Summary[], member: keyof Summary): number {
  return summaries.reduce((total, summary) => total + summary[member], 0)
}

async function uploadTogether(
  url: string,
  project: string,
  batchOf: (client: number) => readonly object[],
): Promise<readonly Summary[]> {
  return Promise.all(
    CLIENTS.map(async (client) => {
      const { status, body } = await alone(`${url}/objects/${project}`, {
        method: 'POST',
        body: JSON.stringify(batchOf(client)),
      })
      assert.equal(status, 200, body)
      return JSON.parse(body) as Summary
    }),
  )
}

for (const storage of STORAGES) {
  test(`case 15: 100 clients that upload the same object at once store one value and get 200, over ${storage}`, async (t) => {
    const { url } = await openHost(t, storage)
    const same = await uploadTogether(url, 'same', () => [{ id: 'a', n: 1 }])
    assert.deepEqual([sum(same, 'objects'), sum(same, 'created'), sum(same, 'differing')], [100, 1, 0])
    assert.equal((await alone(`${url}/objects/same/a/single`)).body, '{"id":"a","n":1}')
  })

  test(`case 15: of 100 concurrent texts of one id, one is stored, for every client and forever, over ${storage}`, async (t) => {
    const { url } = await openHost(t, storage)
    const shared = await uploadTogether(url, 'texts', (client) => [
      { id: 'a', client },
      { id: `own-${client}`, to: { referencedId: 'a' } },
    ])
    assert.deepEqual([sum(shared, 'created'), sum(shared, 'differing')], [101, 99])
    const seen = new Set<string>()
    for (const client of CLIENTS.slice(0, 20)) {
      seen.add((await alone(`${url}/objects/texts/a/single`)).body)
      const [own, a] = JSON.parse((await alone(`${url}/objects/texts/own-${client}`)).body) as { id: string }[]
      assert.equal(own.id, `own-${client}`)
      seen.add(JSON.stringify(a))
    }
    assert.equal(seen.size, 1)
  })

  test(`case 15: overlapping packs of 100 concurrent clients store each object once, over ${storage}`, async (t) => {
    const { url } = await openHost(t, storage)
    const objects = Array.from({ length: 60 }, (_, n) => ({
      id: `o${n}`,
      data: randomBytes(3_000).toString('base64'),
      ...(n === 0 ? { to: Array.from({ length: 59 }, (_, at) => ({ referencedId: `o${at + 1}` })) } : {}),
    }))
    const summaries = await uploadTogether(url, 'packs', (client) =>
      objects.slice((client % 3) * 10, 40 + (client % 3) * 10),
    )
    assert.deepEqual([sum(summaries, 'created'), sum(summaries, 'differing')], [60, 0])
    const graph = JSON.parse((await alone(`${url}/objects/packs/o0`)).body) as { id: string }[]
    assert.deepEqual(
      new Map(graph.map((object) => [object.id, object])),
      new Map(objects.map((object) => [object.id, object])),
    )
    assert.equal(graph.length, 60)
  })

  test(`case 16: an object acknowledged with 200 is present on every connection afterwards, over ${storage}`, async (t) => {
    const { url } = await openHost(t, storage)
    await alone(`${url}/objects/p`, {
      method: 'POST',
      body: JSON.stringify([{ id: 'root', to: Array.from({ length: 24 }, (_, n) => ({ referencedId: `c${n}` })) }]),
    })
    const present = async (id: string, n: number): Promise<void> => {
      const body = JSON.stringify({ objects: [id] })
      const [diff, list, single, own, root] = await Promise.all([
        alone(`${url}/api/diff/p`, { method: 'POST', body }),
        alone(`${url}/api/getobjects/p`, { method: 'POST', body }),
        alone(`${url}/objects/p/${id}/single`),
        alone(`${url}/objects/p/${id}`),
        alone(`${url}/objects/p/root`),
      ])
      const object = JSON.stringify({ id, n, data: 'x'.repeat(n * 5_000) })
      assert.deepEqual(
        [diff.body, single.body, list.body, own.body],
        [`{"${id}":true}`, object, `[${object}]`, `[${object}]`],
      )
      assert.ok(root.body.includes(object), 'also below a root that lacked it before')
    }
    await Promise.all(
      [0, 1, 2, 3].map(async (writer) => {
        for (let n = writer; n < 24; n += 4) {
          const upload = await fetch(`${url}/objects/p`, jsonUpload([{ id: `c${n}`, n, data: 'x'.repeat(n * 5_000) }]))
          assert.equal(upload.status, 200)
          await present(`c${n}`, n)
        }
      }),
    )
    const { body } = await alone(`${url}/objects/p/root?strict`)
    assert.equal((JSON.parse(body) as unknown[]).length, 25)
  })
}
