import assert from 'node:assert/strict'
import { test } from 'node:test'
import { load } from './loaders.ts'
import { roundTrip, SPECKLEPY, type Specklepy } from './specklepy.ts'
import { assertSameObjects, serveFor201 } from './support.ts'

/* Every client that can be had, over one model. `STOWAGE_CLIENT_ELEMENTS` says how large it is. */

const TIME_LIMIT = { timeout: 600_000 }
const CLIENTS: Readonly<Record<Specklepy, number>> = { current: 2_500, older: 1_200 }
const chosen = process.env.STOWAGE_CLIENT_ELEMENTS

for (const [client, usual] of Object.entries(CLIENTS) as readonly (readonly [Specklepy, number])[]) {
  const elements = chosen === undefined ? usual : Number(chosen)
  test(`specklepy ${SPECKLEPY[client]}: an upload is equal in specklepy and in each loader`, TIME_LIMIT, async (t) => {
    const target = await serveFor201(t, 'demo')
    const sent = await roundTrip(t, client, 'send', target, { elements: elements })
    assert.equal(sent.version, SPECKLEPY[client])
    assert.ok(sent.objects.size > 4 * elements)
    const again = await roundTrip(t, client, 'send', target, { elements: elements })
    assert.equal(again.root, sent.root)
    const received = await roundTrip(t, client, 'receive', target, { root: sent.root, elements: elements })
    assert.equal(received.same, true)
    assertSameObjects(received.objects, sent.objects)
    for (const loader of ['objectloader2', 'objectloader'] as const) {
      const loaded = await load(t, loader, target, sent.root)
      assert.equal(loaded.end, 'done')
      assertSameObjects(loaded.received, sent.objects)
      assert.equal(loaded.given.size, sent.objects.size)
    }
  })
}
