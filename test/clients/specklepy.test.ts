import assert from 'node:assert/strict'
import { test } from 'node:test'
import { claimAuthorize, StowageError } from '../../src/index.ts'
import { HOSTS } from '../mounts/hosts.ts'
import { buildModel } from '../support/model.ts'
import { sendFromBrowser } from './browser-sender.ts'
import { roundTrip, SPECKLEPY, type Specklepy } from './specklepy.ts'
import { assertSameObjects, serveFor201, startServer } from './support.ts'

const CLIENTS = Object.keys(SPECKLEPY) as readonly Specklepy[]
const TIME_LIMIT = { timeout: 600_000 }

for (const client of CLIENTS) {
  test(
    `specklepy ${SPECKLEPY[client]}: requests all ids of a browser's 20,000 objects at once`,
    TIME_LIMIT,
    async (t) => {
      const model = buildModel({ objects: 20_000 })
      const target = await serveFor201(t, 'demo')
      await sendFromBrowser(target, model.objects)
      const received = await roundTrip(t, client, 'receive', target, { root: model.rootId })
      assertSameObjects(received.objects, model.byId)
    },
  )

  test(
    `specklepy ${SPECKLEPY[client]}: reads objects of others that contain line separators and tabs`,
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
  `specklepy ${SPECKLEPY.current}: a 503 with Retry-After for each request kind costs only time`,
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

test('specklepy works with Express 5 and Hono 4, below a path', TIME_LIMIT, async (t) => {
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
  'specklepy reports a failure if a service answers uploads with 200, as the contract says',
  TIME_LIMIT,
  async (t) => {
    await using server = await startServer()
    await assert.rejects(
      roundTrip(t, 'current', 'send', { url: server.url, token: 'any', projectId: 'demo' }, { elements: 5 }),
      /status code 200/,
    )
  },
)
