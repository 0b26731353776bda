import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { type ExclusivePlace, type OccupiedPlace, takePlace } from '../../src/data-folder/exclusive-place.ts'
import { thisProcess } from '../../src/data-folder/process-holder.ts'
import { testProcess } from '../support/child-process.ts'
import { temporaryFolder } from '../support/folder.ts'

const HOLDER = new URL('./hold-place.ts', import.meta.url)

function held(taken: ExclusivePlace | OccupiedPlace): ExclusivePlace {
  assert.ok('release' in taken, JSON.stringify(taken))
  return taken
}

function occupied(taken: ExclusivePlace | OccupiedPlace): OccupiedPlace {
  assert.ok('file' in taken, 'the place was given twice')
  return taken
}

test('a place is given to one, and to the next when it is released', async (t) => {
  const folder = temporaryFolder(t)
  const path = join(folder, 'file')
  const first = held(await takePlace(path))
  assert.equal(occupied(await takePlace(path)).holder?.pid, process.pid)
  await held(await takePlace(join(folder, 'file.other'))).release()
  await first.release()
  await held(await takePlace(path)).release()
  assert.deepEqual(readdirSync(folder), [])
})

test('of several that want a place at the same moment, at most one gets it', async (t) => {
  const folder = temporaryFolder(t)
  for (let round = 0; round < 5; round++) {
    const all = await Promise.all(Array.from({ length: 4 }, () => takePlace(join(folder, 'file'))))
    const winners = all.filter((taken) => 'release' in taken)
    assert.ok(winners.length <= 1, `${winners.length} got it`)
    for (const winner of winners) await winner.release()
    assert.deepEqual(readdirSync(folder), [])
  }
})

test('the place of a process that was killed is free at once', async (t) => {
  const folder = temporaryFolder(t)
  const path = join(folder, 'file')
  const { child, next } = testProcess(t, HOLDER, { path })
  assert.equal(await next(), true)
  assert.equal(occupied(await takePlace(path)).holder?.pid, child.pid)
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
  await held(await takePlace(path)).release()
  assert.deepEqual(readdirSync(folder), [])
})

test('the file of another machine counts, and that of a process that is still writing it does not', async (t) => {
  const folder = temporaryFolder(t)
  const path = join(folder, 'file')
  const elsewhere = `${path}.lock-1-0`
  writeFileSync(elsewhere, JSON.stringify({ ...(await thisProcess()), host: 'elsewhere.example' }))
  assert.deepEqual(occupied(await takePlace(path)).file, elsewhere)
  writeFileSync(elsewhere, '{"pid":')
  assert.deepEqual(occupied(await takePlace(path)), { holder: undefined, file: elsewhere })

  const other = join(folder, 'other')
  writeFileSync(`${other}.lock-1-0.0.tmp`, '{"pid":')
  await held(await takePlace(other)).release()
})
