import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createRandom } from '../../bench/model/random.ts'
import { damageFiles } from './flips.ts'

/* A part of `npm run soak`: damages many places of files of each kind. */

const { values: chosen } = parseArgs({
  options: {
    'per-kind': { type: 'string', default: '300' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    folder: { type: 'string', default: tmpdir() },
  },
})
const scratch = mkdtempSync(join(chosen.folder, 'stowage-flips-'))
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }))
console.log(`seed ${chosen.seed}`)
for (const storage of ['filesystem', 'level'] as const) {
  const { counts, failures } = await damageFiles({
    storage,
    scratch,
    perKind: Number(chosen['per-kind']),
    random: createRandom(Number(chosen.seed)),
  })
  console.log(
    `${storage}: ${[...counts].map(([kind, count]) => `${count} times ${kind}`).join(', ')}; ${failures.length} failures`,
  )
  for (const failure of failures) console.error(failure)
  if (failures.length > 0) process.exitCode = 1
}
