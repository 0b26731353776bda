import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Semaphore } from '../../src/async/semaphore.ts'

const live = (): AbortSignal => new AbortController().signal

function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = (): void => undefined
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { opened, open: () => open() }
}

test('a semaphore runs a bounded number of tasks, the others in order of arrival', async () => {
  const semaphore = new Semaphore(2)
  const started: number[] = []
  let running = 0
  let most = 0
  await Promise.all(
    Array.from({ length: 10 }, (_, i) =>
      semaphore.run(live(), async () => {
        started.push(i)
        most = Math.max(most, ++running)
        await nextTurn()
        running--
      }),
    ),
  )
  assert.equal(most, 2)
  assert.deepEqual(started, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
})

test('a failing task frees its slot and its error is rethrown', async () => {
  const semaphore = new Semaphore(1)
  await assert.rejects(
    semaphore.run(live(), () => Promise.reject(new Error('broken'))),
    /broken/,
  )
  assert.equal(await semaphore.run(live(), () => Promise.resolve(7)), 7)
})

test('an aborted waiter leaves the queue and never runs', async () => {
  const semaphore = new Semaphore(1)
  const { opened, open } = gate()
  const first = semaphore.run(live(), () => opened)
  const controller = new AbortController()
  let ran = false
  const waiting = semaphore.run(controller.signal, async () => {
    ran = true
  })
  const behind = semaphore.run(live(), () => Promise.resolve('behind'))
  controller.abort(new Error('gone'))
  await assert.rejects(waiting, /gone/)
  await assert.rejects(
    semaphore.run(controller.signal, () => Promise.resolve()),
    /gone/,
  )
  open()
  await first
  assert.equal(await behind, 'behind')
  assert.equal(ran, false)
})

test('an abort after a task started frees no slot', async () => {
  const semaphore = new Semaphore(1)
  const { opened, open } = gate()
  const first = semaphore.run(live(), () => opened)
  const controller = new AbortController()
  const second = semaphore.run(controller.signal, () => Promise.resolve('second'))
  open()
  await first
  controller.abort()
  assert.equal(await second, 'second')
  assert.equal(await semaphore.run(live(), () => Promise.resolve('third')), 'third')
})
