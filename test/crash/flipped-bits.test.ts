import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createRandom } from '../../bench/model/random.ts'
import { damageFiles } from './flips.ts'

/** Files of each kind are damaged so often here; `npm run soak` does it some hundred times. */
const PER_KIND = 4
const SEED = Math.floor(Math.random() * 1_000_000)

for (const storage of ['filesystem', 'level'] as const) {
  test(`a damaged file never becomes a wrong object, and check finds it: ${storage}`, async (t) => {
    const scratch = mkdtempSync(join(tmpdir(), 'stowage-flips-'))
    t.after(() => rmSync(scratch, { recursive: true, force: true }))
    t.diagnostic(`seed ${SEED}`)
    const { counts, failures } = await damageFiles({ storage, scratch, perKind: PER_KIND, random: createRandom(SEED) })
    assert.equal(failures.join('\n'), '')
    const kinds = storage === 'level' ? ['blobs/N.ldb', 'blobs/N.log', 'blobs/MANIFEST-N', 'blobs/CURRENT'] : ['pack', 'plan', 'tombstone']
    for (const kind of [...kinds, 'records/N.ldb', 'records/N.log', 'records/MANIFEST-N', 'records/CURRENT', 'stowage.json']) assert.ok(counts.get(kind), kind)
  })
}
