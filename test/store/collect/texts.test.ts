import assert from 'node:assert/strict'
import { test } from 'node:test'
import { download, idOfLine, listed, put } from '../support.ts'
import { node, OLDER_THAN, openCollecting, PROJECT, UNDO } from './collecting.ts'

/** Plans of more than 1,000 objects are stored, smaller ones stay in memory. */
for (const children of [3, 1_200])
  test(`a plan of ${children} objects sends the text with which a condemned object came again`, async () => {
    const ids = Array.from({ length: children }, (_, i) => `child-${i}`)
    const collecting = await openCollecting(2)
    const [store, other] = collecting.stores
    await put(store, PROJECT, [...ids.map((id) => node(id)), node('root', ids)])
    await put(store, PROJECT, [node('kept')])
    collecting.roots.add('kept')
    await collecting.collect()
    await collecting.pass(OLDER_THAN + 1)
    assert.equal((await collecting.collect()).condemned.objects, children + 1)
    for (const one of [store, other]) {
      assert.equal((await download(one, PROJECT, 'root'))?.ids.size, children + 1)
      await one.idle()
      assert.equal((await download(one, PROJECT, 'root'))?.isPlanned, true)
    }
    await put(other, PROJECT, [node('child-1', [], 'another text')])
    for (const one of [store, other]) {
      const [line] = await listed(one, PROJECT, ['child-1'])
      assert.match(line, /another text/)
      for (const _ of [1, 2]) {
        const got = await download(one, PROJECT, 'root')
        assert.deepEqual(
          got?.lines.filter((other) => idOfLine(other) === 'child-1'),
          [line],
        )
        await one.idle()
      }
      assert.equal((await download(one, PROJECT, 'root'))?.isPlanned, true, 'the new plan is used')
    }
    await collecting.pass(UNDO + 1)
    await collecting.collect()
    await collecting.close()
  })
