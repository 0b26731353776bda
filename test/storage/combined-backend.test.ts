import assert from 'node:assert/strict'
import { readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { filesystemBackend, filesystemBlobs } from '../../adapters/filesystem/index.ts'
import { levelRecords } from '../../adapters/level/index.ts'
import { memoryBackend, memoryBlobs, memoryRecords } from '../../adapters/memory/index.ts'
import type { BlobStore, RecordStore, StorageBackend } from '../../src/storage/backend.ts'
import { adoptingBackend } from '../../src/storage/combined-backend.ts'
import { combinedBackend } from '../../src/storage/index.ts'
import { checkStore } from '../../src/store/upkeep/check.ts'
import { chunks, key, text } from '../adapters/support.ts'
import { folderInMemory } from '../support/folder.ts'

const root = folderInMemory()

/** A half that outlives the backends over it, as a server elsewhere does; `before` may stop each of its calls. */
function remote<S extends RecordStore | BlobStore>(store: S, place: string, before = async (_call: string) => {}): S {
  return new Proxy(store, {
    get: (target, name) => {
      if (name === 'place') return place
      if (name === 'close' || name === 'ready') return async () => undefined
      const member: unknown = Reflect.get(target, name, target)
      if (name === 'list' || typeof member !== 'function')
        return typeof member === 'function' ? member.bind(target) : member
      return async (...call: unknown[]) => {
        await before(String(name))
        return (await member.apply(target, call)) as unknown
      }
    },
  })
}

async function idsOf(blobs: BlobStore): Promise<string[]> {
  const names: string[] = []
  for await (const batch of blobs.list('cluster/')) names.push(...batch.map(({ name }) => name))
  return names
}

function pair(records: RecordStore, blobs: BlobStore, before?: (call: string) => Promise<void>): StorageBackend {
  return combinedBackend({ records: remote(records, 'place R', before), blobs: remote(blobs, 'place B', before) })
}

test('new halves receive one id, and open again', async () => {
  const { records, blobs } = memoryBackend()
  for (let round = 0; round < 3; round++) {
    const backend = pair(records, blobs)
    await backend.ready?.()
    await backend.close()
    assert.equal((await idsOf(blobs)).length, 1)
  }
})

test('the first call refuses what ready refuses: blobs of other records, and blobs that lack the id', async () => {
  const [one, other] = [memoryBackend(), memoryBackend()]
  await pair(one.records, one.blobs).ready?.()
  await pair(other.records, other.blobs).ready?.()
  const names = /records in place R and the blobs in place B do not belong together.*id [0-9a-f]{32}/
  for (const mixed of [() => pair(one.records, other.blobs), () => pair(memoryRecords(), other.blobs)]) {
    await assert.rejects(async () => mixed().ready?.(), names)
    await assert.rejects(mixed().records.getMany([key('a')]), names)
    await assert.rejects(mixed().blobs.put('a', chunks('x')), names)
  }
  await assert.rejects(async () => pair(one.records, memoryBlobs()).ready?.(), /lack the blob cluster\/[0-9a-f]{32}/)
  // Nothing of it harmed the pairs that belong together.
  await pair(one.records, one.blobs).ready?.()
  await pair(other.records, other.blobs).ready?.()
})

test('blobs with the ids of two clusters are refused', async () => {
  const { records, blobs } = memoryBackend()
  await pair(records, blobs).ready?.()
  await blobs.put(`cluster/${'0'.repeat(32)}`, chunks('x'))
  await assert.rejects(async () => pair(records, blobs).ready?.(), /do not belong together.*cluster\/0{32}/)
})

test('a reindex takes the id of the blobs for records that were lost, and only then', async () => {
  const [lived, other] = [memoryBackend(), memoryBackend()]
  await pair(lived.records, lived.blobs).ready?.()
  await pair(other.records, other.blobs).ready?.()
  const reopened = async (records: RecordStore, blobs: BlobStore): Promise<number> => {
    let adopted = 0
    const halves = { records: remote(records, 'place R'), blobs: remote(blobs, 'place B') }
    await adoptingBackend(halves, () => adopted++).ready?.()
    return adopted
  }
  assert.equal(await reopened(lived.records, lived.blobs), 0)
  await assert.rejects(reopened(other.records, lived.blobs), /do not belong together/)
  const lost = memoryRecords()
  // A server was started on the empty records, and was refused.
  await assert.rejects(async () => pair(lost, lived.blobs).ready?.(), /do not belong together/)
  assert.equal(await reopened(lost, lived.blobs), 1)
  await pair(lost, lived.blobs).ready?.()
  const damaged = memoryRecords()
  await damaged.commit({ put: [{ key: key('cluster\0'), value: key('whole 12') }] })
  assert.equal(await reopened(damaged, lived.blobs), 1)
  await pair(damaged, lived.blobs).ready?.()
  await assert.rejects(reopened(lived.records, memoryBlobs()), /lack the blob cluster/)
  // New halves are no lost ones.
  assert.equal(await reopened(memoryRecords(), memoryBlobs()), 0)
})

test('a damaged id is refused', async () => {
  const { records, blobs } = memoryBackend()
  await records.commit({ put: [{ key: key('cluster\0'), value: key('whole 12') }] })
  await assert.rejects(async () => pair(records, blobs).ready?.(), /id in the records in place R is damaged/)
})

test('a crash before or after each step of the pairing is made up for by the next start', async () => {
  let points = 0
  for (const side of ['before', 'after'] as const) {
    for (let point = 1; ; point++) {
      const { records, blobs } = memoryBackend()
      let calls = 0
      const crashing = async (): Promise<void> => {
        if (++calls === point && side === 'before') throw new Error('the server was killed')
        if (side === 'after' && calls > point) throw new Error('the server was killed')
      }
      const outcome = await pair(records, blobs, crashing)
        .ready?.()
        .then(
          () => 'whole',
          () => 'killed',
        )
      await pair(records, blobs).ready?.()
      assert.equal((await idsOf(blobs)).length, 1, `${side} call ${point}`)
      assert.match(text((await records.getMany([key('cluster\0')]))[0]) ?? '', /^whole /)
      if (outcome === 'whole') break
      points++
    }
  }
  assert.ok(points >= 6, `${points} points`)
})

test('servers that start at once agree on one id, in any order of their steps', async () => {
  for (let seed = 1; seed <= 40; seed++) {
    const { records, blobs } = memoryBackend()
    let state = seed
    const turns = async (): Promise<void> => {
      state = (state * 48_271) % 2_147_483_647
      for (let turn = state % 7; turn > 0; turn--) await new Promise((resolve) => setImmediate(resolve))
    }
    const servers = Array.from({ length: 3 }, () => pair(records, blobs, turns))
    await Promise.all(servers.map(async (server) => server.ready?.()))
    assert.equal((await idsOf(blobs)).length, 1, `seed ${seed}`)
    await servers[2].records.insertMany([{ key: key('a'), value: key('b') }])
    assert.equal(text((await servers[0].records.getMany([key('a')]))[0]), 'b')
  }
})

test('closing closes both halves, the records last, also if only one of them could be opened', async () => {
  const closed: string[] = []
  const noting = <S extends RecordStore | BlobStore>(store: S, name: string, ready: () => Promise<void>): S =>
    new Proxy(store, {
      get: (target, member) => {
        if (member === 'ready') return ready
        if (member === 'close') return async () => void closed.push(name)
        const value: unknown = Reflect.get(target, member, target)
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      },
    })
  const open = async (): Promise<void> => undefined
  const works = combinedBackend({
    records: noting(memoryRecords(), 'records', open),
    blobs: noting(memoryBlobs(), 'blobs', open),
  })
  await works.ready?.()
  await works.close()
  assert.deepEqual([...new Set(closed)], ['blobs', 'records'])
  closed.length = 0
  const fails = combinedBackend({
    records: noting(memoryRecords(), 'records', open),
    blobs: noting(memoryBlobs(), 'blobs', async () => Promise.reject(new Error('no such bucket'))),
  })
  await assert.rejects(
    async () => fails.ready?.(),
    /^Error: the blobs in the memory of this process cannot be opened: no such bucket$/,
  )
  await fails.close()
  assert.deepEqual([...new Set(closed)], ['blobs', 'records'])
})

test('an error of a call names the half', async () => {
  const broken = async (call: string): Promise<void> => {
    if (call === 'commit' || call === 'remove') throw new Error('gone')
  }
  const { records, blobs } = memoryBackend()
  await pair(records, blobs).ready?.()
  const backend = pair(records, blobs, broken)
  await assert.rejects(backend.records.commit({}), /the storage of the records cannot be used/)
  await assert.rejects(backend.blobs.remove(['a']), /the storage of the blobs cannot be used/)
})

test('check has nothing to say about the mark of a cluster', async () => {
  const backend = combinedBackend({ records: memoryRecords(), blobs: memoryBlobs() })
  await backend.ready?.()
  for await (const finding of checkStore(backend)) assert.fail(JSON.stringify(finding))
})

describe('a folder of blobs that several servers use', () => {
  test('what one puts the other reads, and only one put of a name wins', async () => {
    const path = join(root, 'shared')
    const servers = Array.from({ length: 4 }, () => filesystemBlobs({ path }))
    await Promise.all(servers.map(async (server) => server.ready?.()))
    const puts = await Promise.allSettled(servers.map((server, at) => server.put('one', chunks(String(at)))))
    const winner = puts.findIndex(({ status }) => status === 'fulfilled')
    assert.equal(puts.filter(({ status }) => status === 'fulfilled').length, 1)
    for (const server of servers) assert.equal(text(await server.read('one', 0, 1)), String(winner))
    await servers[0].remove(['one'])
    // Also by those that have the removed file open.
    for (const server of servers) await assert.rejects(server.read('one', 0, 1), { name: 'BlobNotFoundError' })
    await servers[1].put('one', chunks('!'))
    for (const server of servers) assert.equal(text(await server.read('one', 0, 1)), '!')
    await Promise.all(servers.map((server) => server.close()))
  })

  test('opening leaves what another server writes, and removes what lay for more than a day', async () => {
    const path = join(root, 'abandoned')
    await filesystemBlobs({ path }).ready?.()
    const incoming = join(path, 'incoming')
    await writeFile(join(incoming, 'fresh'), 'x')
    await writeFile(join(incoming, 'old'), 'x')
    const twoDaysAgo = new Date(Date.now() - 172_800_000)
    await utimes(join(incoming, 'old'), twoDaysAgo, twoDaysAgo)
    await filesystemBlobs({ path }).ready?.()
    assert.deepEqual(await readdir(incoming), ['fresh'])
  })

  test('it is not mistaken for a folder with both halves, nor is one of those for it', async () => {
    const [half, both] = [join(root, 'half'), join(root, 'both')]
    await filesystemBlobs({ path: half }).ready?.()
    await assert.rejects(
      async () => filesystemBackend({ path: half }).ready?.(),
      /kind filesystem-blobs.*opened as filesystem/,
    )
    const backend = filesystemBackend({ path: both })
    await backend.ready?.()
    await backend.close()
    await assert.rejects(
      async () => filesystemBlobs({ path: both }).ready?.(),
      /kind filesystem;.*opened as filesystem-blobs/,
    )
    await assert.rejects(
      async () => levelRecords({ path: both }).ready?.(),
      /kind filesystem;.*opened as level-records/,
    )
  })

  test('a folder that lost its packs is refused', async () => {
    const path = join(root, 'lost')
    await filesystemBlobs({ path }).ready?.()
    await rm(join(path, 'packs'), { recursive: true })
    await assert.rejects(async () => filesystemBlobs({ path }).ready?.(), /packs is missing/)
  })
})
