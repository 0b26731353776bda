import assert from 'node:assert/strict'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { levelBackend } from '../../adapters/level/index.ts'
import { createRandom } from '../../bench/model/random.ts'
import { reindexStore } from '../../src/store/upkeep/reindex.ts'
import { checkFolder, damagedCopy, filesOf, fillFolder, judge, someFlippedBit } from './damaged-folder.ts'
import type { Storage } from './server.ts'
import { temporaryFolder } from '../support/folder.ts'

/* `reindex` on folders whose database is damaged or in parts missing: what is left of it is opened, and the records are made anew from the packs. */

const scratch = temporaryFolder()
const random = createRandom(Math.floor(Math.random() * 1_000_000))
const copy = join(scratch, 'copy')

before(async () => {
  for (const storage of ['filesystem', 'level'] as const)
    await fillFolder(storage, join(scratch, storage), join(scratch, `${storage}-crashed`))
})

async function salvage(storage: Storage): Promise<readonly string[]> {
  const told: string[] = []
  const options = { path: copy, onSalvaged: (what: string) => void told.push(what) }
  const backend = storage === 'level' ? levelBackend(options) : filesystemBackend(options)
  try {
    await backend.ready?.()
    for await (const finding of reindexStore(backend)) assert.ok(finding)
  } finally {
    await backend.close()
  }
  return told
}

/** A copy with one flipped bit in a file of the kind; the answer is the file. */
function flipOneOf(storage: Storage, kind: RegExp): string {
  const folder = join(scratch, storage)
  const path = random.pick(filesOf(folder).filter((name) => kind.test(name)))
  damagedCopy(folder, copy, someFlippedBit(folder, path, random))
  return path
}

for (const storage of ['filesystem', 'level'] as const) {
  for (const kind of [/^records\/CURRENT$/, /^records\/MANIFEST/]) {
    test(`${storage}: losing ${kind.source} loses no object`, async () => {
      const path = flipOneOf(storage, kind)
      const told = await salvage(storage)
      assert.match(told[0], new RegExp(`^${path.replace(/MANIFEST.*/, '')}[^ ]* is damaged: `))
      assert.equal(await checkFolder(storage, copy), 0)
      assert.deepEqual(await judge(storage, copy), { wrong: [], isVisible: false })
    })
  }

  test(`${storage}: a damaged table costs only its own records, and no object is wrong`, async () => {
    const path = flipOneOf(storage, /^records\/\d+\.ldb$/)
    const told = await salvage(storage)
    assert.match(told[0], new RegExp(`^${path} is damaged: .*; it was set aside as damaged`))
    assert.deepEqual(readdirSync(join(copy, 'damaged')), [path.replace('/', '-')])
    assert.equal(await checkFolder(storage, copy), 0)
    assert.deepEqual((await judge(storage, copy)).wrong, [])
  })
}

test('salvage leaves a sound folder unchanged', async () => {
  const folder = join(scratch, 'filesystem')
  damagedCopy(folder, copy, { path: 'stowage.json', at: 0, name: 'nothing', apply: (bytes) => bytes })
  assert.deepEqual(await salvage('filesystem'), [])
  assert.deepEqual(await judge('filesystem', copy), { wrong: [], isVisible: false })
})

test('packs in their own files come back without any records', async () => {
  damagedCopy(join(scratch, 'filesystem'), copy, {
    path: 'stowage.json',
    at: 0,
    name: 'nothing',
    apply: (bytes) => bytes,
  })
  rmSync(join(copy, 'records'), { recursive: true })
  assert.deepEqual(await salvage('filesystem'), ['records/CURRENT is missing'])
  assert.equal(await checkFolder('filesystem', copy), 0)
  const { wrong } = await judge('filesystem', copy)
  assert.deepEqual(wrong, [])
  const backend = filesystemBackend({ path: copy })
  let records = 0
  for await (const entries of backend.records.range({ gte: Buffer.from('o'), lt: Buffer.from('p') }))
    records += entries.length
  await backend.close()
  assert.ok(records > 800, `${records} objects are found`)
})
