import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { MemoryLease } from '../../src/memory/memory-lease.ts'
import { divideMemory } from '../../src/memory/service-memory.ts'
import { projectFolder } from '../../src/store/records/keys.ts'
import { PATIENCE_MS, turns } from '../support/patience.ts'
import { gate, hooked } from './failures.ts'
import { referTo } from './graphs.ts'
import { download, type Made, never, openStore, put, until, within } from './support.ts'

test('a download that waits for a walk of upkeep goes on by itself when upkeep gives its memory to another', async (t) => {
  const below: Made[] = Array.from({ length: 3_000 }, (_, at) => ({ id: `${at}`.padStart(32, 'e'), text: `${at}` }))
  const { store: first, backend } = await openStore(memoryBackend())
  await put(first, 'demo', below)
  await first.close()

  const memory = divideMemory(8_000_000, { waitMs: PATIENCE_MS, patienceMs: 5 })
  const pass = gate()
  let reads = 0
  const { store } = await openStore(
    hooked(backend, async (call, _name, work) => {
      // The tables of the root's pack, and then those of the other one.
      if (call === 'read' && ++reads === 2) await pass.opened
      return work()
    }),
    { memory },
  )
  await put(store, 'demo', [{ id: 'root', children: referTo(below.map(({ id }) => id)) }])
  await until(() => reads === 2)
  let isDownloaded = false
  const downloading = download(store, 'demo', 'root').then((got) => ((isDownloaded = true), got))
  await turns()
  const { requests } = memory
  const other = requests.open({ signal: never, party: { principal: 'other', projectId: 'demo' } })
  const revoke = t.mock.method(MemoryLease.prototype, 'revoke')
  const granted = other.hold(requests.limitBytes - 65_536)
  // The index of the walk is taken first, and the walk could still end without it.
  await until(() => revoke.mock.calls.some(({ this: lease }) => !(lease as MemoryLease).isSpare))
  pass.open()
  await within('upkeep gives way', Promise.resolve(granted))
  await turns()
  assert.equal(isDownloaded, false, 'the walk of upkeep ended first')
  other.release()
  assert.equal((await within('the download', downloading))?.lines.length, below.length + 1)
  await store.close()
  assert.equal(requests.heldBytes, 0)
})

test('a plan is made ahead after the walks that requests wait for', async () => {
  const below: Made[] = Array.from({ length: 3_000 }, (_, at) => ({ id: `${at}`.padStart(32, 'e'), text: `${at}` }))
  const root = { id: 'root', children: referTo(below.map(({ id }) => id)) }
  const { store: first, backend } = await openStore(memoryBackend())
  for (const project of ['uploaded', 'downloaded']) await put(first, project, [...below, root])
  await first.close()

  const pass = gate()
  const reads = new Map<string, number>()
  const { store } = await openStore(
    hooked(backend, async (call, name, work) => {
      if (call === 'read') {
        const folder = name.split('/')[0]
        reads.set(folder, (reads.get(folder) ?? 0) + 1)
        if (folder === projectFolder('downloaded')) await pass.opened
      }
      return work()
    }),
  )
  const downloading = download(store, 'downloaded', 'root')
  await until(() => reads.has(projectFolder('downloaded')))
  await put(store, 'uploaded', [{ ...root, id: 'another root' }])
  // It is due a quarter of a second after the upload.
  await delay(500)
  assert.equal(reads.has(projectFolder('uploaded')), false)
  pass.open()
  assert.equal((await within('the download', downloading))?.lines.length, below.length + 1)
  await until(() => reads.has(projectFolder('uploaded')))
  await store.close()
})

for (const isJoined of [false, true])
  test(`a walk of upkeep gives way to that of a request${isJoined ? ', until a request joins it' : ''}`, async () => {
    const below: Made[] = Array.from({ length: 3_000 }, (_, at) => ({ id: `${at}`.padStart(32, 'e'), text: `${at}` }))
    const root = { id: 'root', children: referTo(below.map(({ id }) => id)) }
    const { store: first, backend } = await openStore(memoryBackend())
    for (const project of ['uploaded', 'downloaded']) await put(first, project, [...below, root])
    await first.close()

    const passes = new Map(['uploaded', 'downloaded'].map((project) => [projectFolder(project), gate()]))
    const calls = new Set<string>()
    const { store } = await openStore(
      hooked(backend, async (call, name, work) => {
        const folder = name.split('/')[0]
        calls.add(`${call} ${folder}`)
        if (call === 'read') await passes.get(folder)?.opened
        return work()
      }),
    )
    const has = (call: string, project: string): boolean => calls.has(`${call} ${projectFolder(project)}`)
    const open = (project: string): void => passes.get(projectFolder(project))?.open()

    await put(store, 'uploaded', [{ ...root, id: 'another root' }])
    calls.clear()
    await until(() => has('read', 'uploaded'))
    const downloading = download(store, 'downloaded', 'root')
    await until(() => has('read', 'downloaded'))
    open('uploaded')
    await delay(300)
    assert.equal(has('put', 'uploaded'), false)
    if (isJoined) {
      const joining = await within('the download that joins', download(store, 'uploaded', 'another root'))
      assert.equal(joining?.lines.length, below.length + 1)
    }
    open('downloaded')
    assert.equal((await within('the download', downloading))?.lines.length, below.length + 1)
    await until(() => has('put', 'uploaded'))
    await store.close()
  })
