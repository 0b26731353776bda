import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { linkedAbort, onAbort } from '../../src/async/abort.ts'

test('a linked signal aborts with the first of its signals, and with its reason', () => {
  const [first, second] = [new AbortController(), new AbortController()]
  const { controller } = linkedAbort(first.signal, undefined, second.signal)
  second.abort('second')
  first.abort('first')
  assert.equal(controller.signal.reason, 'second')
})

test('a signal that has aborted already aborts the linked one at once', () => {
  const { controller } = linkedAbort(new AbortController().signal, AbortSignal.abort('before'))
  assert.equal(controller.signal.reason, 'before')
})

test('an unlinked signal aborts no more', () => {
  const parents = [new AbortController(), new AbortController()]
  const { controller, unlink } = linkedAbort(...parents.map(({ signal }) => signal))
  unlink()
  for (const parent of parents) parent.abort()
  assert.equal(controller.signal.aborted, false)
})

test('what waits for a linked signal is collected with the signals, even if it never ends', async () => {
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  const waiting = waitForever()
  for (let turns = 0; turns < 10 && waiting.deref() !== undefined; turns++) {
    await nextTurn()
    collectGarbage()
  }
  assert.equal(waiting.deref(), undefined)
})

function waitForever(): WeakRef<object> {
  const { controller } = linkedAbort(new AbortController().signal)
  const held = { aborted: false }
  onAbort(controller.signal, () => (held.aborted = true))
  return new WeakRef(held)
}
