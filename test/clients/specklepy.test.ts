import assert from 'node:assert/strict'
import { test } from 'node:test'
import { claimAuthorize, StowageError } from '../../src/index.ts'
import { HOSTS } from '../mounts/hosts.ts'
import { buildModel } from '../support/model.ts'
import { sendFromBrowser } from './browser-sender.ts'
import { load } from './loaders.ts'
import { roundTrip, SPECKLEPY, type Specklepy } from './specklepy.ts'
import { assertSameObjects, serveFor201, startServer } from './support.ts'

const CLIENTS = Object.keys(SPECKLEPY) as readonly Specklepy[]
const TIME_LIMIT = { timeout: 600_000 }
const ELEMENTS: Readonly<Record<Specklepy, number>> = { current: 2_500, older: 1_200 }

for (const client of CLIENTS) {
  test(
    `specklepy ${SPECKLEPY[client]}: what it sends comes back equal, in itself and in each loader`,
    TIME_LIMIT,
    async (t) => {
      const target = await serveFor201(t, 'demo')
      const sent = await roundTrip(t, client, 'send', target, { elements: ELEMENTS[client] })
      assert.equal(sent.version, SPECKLEPY[client])
      assert.ok(sent.objects.size > 4 * ELEMENTS[client])
      const again = await roundTrip(t, client, 'send', target, { elements: ELEMENTS[client] })
      assert.equal(again.root, sent.root)
      const received = await roundTrip(t, client, 'receive', target, { root: sent.root, elements: ELEMENTS[client] })
      assert.equal(received.same, true)
      assertSameObjects(received.objects, sent.objects)
      for (const loader of ['objectloader2', 'objectloader'] as const) {
        const loaded = await load(t, loader, target, sent.root)
        assert.equal(loaded.end, 'done')
        assertSameObjects(loaded.received, sent.objects)
        assert.equal(loaded.given.size, sent.objects.size)
      }
    },
  )

  test(`specklepy ${SPECKLEPY[client]}: 20,000 objects of a browser, all ids in one request`, TIME_LIMIT, async (t) => {
    const model = buildModel({ objects: 20_000 })
    const target = await serveFor201(t, 'demo')
    await sendFromBrowser(target, model.objects)
    const received = await roundTrip(t, client, 'receive', target, { root: model.rootId })
    assertSameObjects(received.objects, model.byId)
  })

  test(
    `specklepy ${SPECKLEPY[client]}: separators of lines and tabs inside of what others sent`,
    TIME_LIMIT,
    async (t) => {
      await using server = await startServer({ uploadStatus: 201 })
      const target = { url: server.url, token: 'any', projectId: 'demo' }
      const children = ['\u0085', '\u2028', '\u2029', '\\t', '\\u000b', '\\u001c', '\\r\\n'].map((character, n) => ({
        id: `c${n}`,
        json: `{"id":"c${n}",\t"text":"a${character}b"\r\n}`,
      }))
      const closure = Object.fromEntries(children.map(({ id }) => [id, 1]))
      const parts = children.map(({ id }) => ({ speckle_type: 'reference', referencedId: id }))
      const root = { id: 'root', json: JSON.stringify({ id: 'root', speckle_type: 'Base', parts, __closure: closure }) }
      await sendFromBrowser(target, [...children, root])
      const { objects } = await roundTrip(t, client, 'receive', target, { root: 'root' })
      assert.deepEqual(
        [...objects].map(([id, json]) => [id, JSON.parse(json) as unknown]),
        [...children, root].map(({ id, json }) => [id, JSON.parse(json) as unknown]),
      )
    },
  )
}

/* The older one does not try again: an upload that meets a 503 fails there. */
test(
  `specklepy ${SPECKLEPY.current}: 503 with Retry-After, once for each kind of request, costs time and nothing else`,
  TIME_LIMIT,
  async (t) => {
    const refused = new Set<string>()
    const busyAtFirst = {
      authenticate: ({
        path,
      }: {
        readonly path: string
      }): { readonly subject: string; readonly projects: { readonly '*': 'write' } } => {
        const kind = path.split('/demo')[0] + path.slice(-7)
        if (!refused.has(kind)) {
          refused.add(kind)
          throw new StowageError('access_unavailable', 'who asks cannot be found out now; try again later')
        }
        return { subject: 'somebody', projects: { '*': 'write' } }
      },
      authorize: claimAuthorize,
    }
    await using server = await startServer({ uploadStatus: 201, access: busyAtFirst })
    const target = { url: server.url, token: 'any', projectId: 'demo' }
    const sent = await roundTrip(t, 'current', 'send', target, { elements: 300 })
    const received = await roundTrip(t, 'current', 'receive', target, { root: sent.root, elements: 300 })
    assert.equal(received.same, true)
    assertSameObjects(received.objects, sent.objects)
    assert.equal(refused.size, 4, [...refused].join())
  },
)

test('specklepy against express 5 and hono 4, below a path', TIME_LIMIT, async (t) => {
  for (const name of ['express 5', 'hono 4']) {
    const host = HOSTS.find((known) => known.name === name)
    assert.ok(host)
    await using server = await startServer({ uploadStatus: 201 }, (service) => host.open(service, '/models'))
    const target = { url: `${server.url}/models`, token: 'any', projectId: 'demo' }
    const sent = await roundTrip(t, 'current', 'send', target, { elements: 800 })
    const received = await roundTrip(t, 'current', 'receive', target, { root: sent.root, elements: 800 })
    assert.equal(received.same, true)
    assertSameObjects(received.objects, sent.objects)
  }
})

test(
  'specklepy against a service that answers uploads with 200, as the contract says: it says so and fails',
  TIME_LIMIT,
  async (t) => {
    await using server = await startServer()
    await assert.rejects(
      roundTrip(t, 'current', 'send', { url: server.url, token: 'any', projectId: 'demo' }, { elements: 5 }),
      /status code 200/,
    )
  },
)
