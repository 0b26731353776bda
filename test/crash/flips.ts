import { join } from 'node:path'
import type { Random } from '../../bench/model/random.ts'
import { checkFolder, type Damage, damagedCopy, filesOf, fillFolder, judge, someDamage } from './damaged-folder.ts'
import type { Storage } from './server.ts'

export interface DamageReport {
  /** Damages by kind of file. */
  readonly counts: ReadonlyMap<string, number>
  /** What a client would have believed, and what `check` did not find. */
  readonly failures: readonly string[]
}

export interface DamageOptions {
  readonly storage: Storage
  readonly scratch: string
  /** Damages to files of each kind: of a folder that was closed, and some of one that a crash left. */
  readonly perKind: number
  readonly random: Random
}

/** Damages files of a folder, each time one place in a fresh copy, and sees what clients get and what `check` finds. */
export async function damageFiles({ storage, scratch, perKind, random }: DamageOptions): Promise<DamageReport> {
  const [closed, crashed, copy] = ['closed', 'crashed', 'copy'].map((name) => join(scratch, `${storage}-${name}`))
  await fillFolder(storage, closed, crashed)
  const failures: string[] = await untouched(storage, [closed, crashed], copy)
  const counts = new Map<string, number>()
  for (const [folder, times] of [
    [closed, perKind],
    [crashed, Math.ceil(perKind / 3)],
  ] as const) {
    const files = filesOf(folder)
    for (const kind of new Set(files.map(kindOf))) {
      const paths = files.filter((path) => kindOf(path) === kind)
      for (let time = 0; time < times; time++) {
        const damage = someDamage(folder, random.pick(paths), random)
        counts.set(kind, (counts.get(kind) ?? 0) + 1)
        failures.push(
          ...(await failuresOf(storage, folder, copy, damage)).map(
            (failure) => `${folder === crashed ? 'after a crash, ' : ''}${damage.name}: ${failure}`,
          ),
        )
      }
    }
  }
  return { counts, failures }
}

async function untouched(storage: Storage, folders: readonly string[], copy: string): Promise<string[]> {
  const failures: string[] = []
  for (const folder of folders) {
    const nothing: Damage = { path: filesOf(folder)[0], at: 0, name: 'nothing', apply: (bytes) => bytes }
    damagedCopy(folder, copy, nothing)
    if ((await checkFolder(storage, copy)) !== 0) failures.push('check finds damage where there is none')
    damagedCopy(folder, copy, nothing)
    if ((await judge(storage, copy)).isVisible) failures.push('a whole folder gives wrong answers')
  }
  return failures
}

async function failuresOf(storage: Storage, folder: string, copy: string, damage: Damage): Promise<string[]> {
  if (!damagedCopy(folder, copy, damage)) return []
  const found = await checkFolder(storage, copy)
  damagedCopy(folder, copy, damage)
  const { wrong } = await judge(storage, copy)
  const failures = wrong.map((question) => `wrong bytes for ${question}`)
  if (found === 0) failures.push('check finds nothing')
  return failures
}

function kindOf(path: string): string {
  return path
    .replace(/^packs\/\w+\/(plan|tombstone)?.*/, (_, kind: string | undefined) => kind ?? 'pack')
    .replace(/\d+/, 'N')
}
