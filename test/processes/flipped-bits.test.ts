import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createRandom } from '../../bench/model/random.ts'
import { checkFolder, type Damage, damagedCopy, filesOf, fillFolder, judge } from '../crash/damaged-folder.ts'
import { damageFiles } from '../crash/flips.ts'
import { folderInMemory } from '../support/folder.ts'

/** Files of each kind are damaged so often here; `npm run soak` does it some hundred times. */
const PER_KIND = 2
const SEED = Math.floor(Math.random() * 1_000_000)

for (const storage of ['filesystem', 'level'] as const) {
  test(`a damaged file never yields a wrong object, and check detects it: ${storage}`, async (t) => {
    const scratch = folderInMemory(t)
    t.diagnostic(`seed ${SEED}`)
    const { counts, failures } = await damageFiles({ storage, scratch, perKind: PER_KIND, random: createRandom(SEED) })
    assert.equal(failures.join('\n'), '')
    const kinds =
      storage === 'level'
        ? ['blobs/N.ldb', 'blobs/N.log', 'blobs/MANIFEST-N', 'blobs/CURRENT']
        : ['pack', 'plan', 'tombstone']
    for (const kind of [
      ...kinds,
      'records/N.ldb',
      'records/N.log',
      'records/MANIFEST-N',
      'records/CURRENT',
      'stowage.json',
    ])
      assert.ok(counts.get(kind), kind)
  })
}

test('check and clients detect a cut pack and a page of zeros', async (t) => {
  const scratch = folderInMemory(t)
  const [folder, copy] = [join(scratch, 'whole'), join(scratch, 'copy')]
  await fillFolder('filesystem', folder, join(scratch, 'crashed'))
  const path = filesOf(folder).find((name) => /^packs\/\w+\/[0-9a-f]{32}\./.test(name)) ?? ''
  const at = readFileSync(join(folder, path)).length >> 1
  const damages: readonly Damage[] = [
    { path, at, name: 'cut', apply: (bytes) => bytes.subarray(0, at) },
    { path, at, name: 'zeroed', apply: (bytes) => bytes.fill(0, at, at + 4_096) },
  ]
  for (const damage of damages) {
    damagedCopy(folder, copy, damage)
    assert.notEqual(await checkFolder('filesystem', copy), 0, damage.name)
    assert.deepEqual(await judge('filesystem', copy), { wrong: [], isVisible: true }, damage.name)
  }
})
