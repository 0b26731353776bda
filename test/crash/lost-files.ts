import assert from 'node:assert/strict'
import { cpSync, readdirSync, readFileSync, rmSync, truncateSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { TestContext } from 'node:test'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { levelBackend } from '../../adapters/level/index.ts'
import { DataFolderError } from '../../src/data-folder/data-folder-error.ts'
import { reindexStore } from '../../src/store/upkeep/reindex.ts'
import { folderInMemory } from '../support/folder.ts'
import { backendIn, checkFolder, fillFolder, judge } from './damaged-folder.ts'
import type { Storage } from './server.ts'

/* Each file of a data folder is removed or cut, one at a time, and opened, checked and reindexed after that. */

interface LostFile {
  /** Relative to the data folder. */
  readonly path: string
  /** How long the file is after it; `undefined` when it is gone. */
  readonly bytes: number | undefined
}

interface Losses {
  readonly files: RegExp
  /** Where a file of this length is cut. */
  readonly cuts: (bytes: number) => readonly number[]
}

/** Of folders that were closed, and that a kill left: what is lost is told, and how it is mended. */
export async function assertNothingIsLostInSilence(t: TestContext, storage: Storage, losses: Losses): Promise<void> {
  const scratch = folderInMemory(t)
  const [closed, crashed, copy] = ['closed', 'crashed', 'copy'].map((name) => join(scratch, name))
  await fillFolder(storage, closed, crashed)
  const faults: string[] = []
  let tried = 0
  for (const folder of [closed, crashed]) {
    for (const lost of lossesOf(folder, losses)) {
      tried++
      for (const fault of await faultsOf(storage, folder, copy, lost))
        faults.push(`${folder === closed ? 'after a clean stop' : 'after a kill'}, ${nameOf(lost)}: ${fault}`)
    }
  }
  assert.ok(tried > 10, `${tried} losses`)
  assert.equal(faults.join('\n'), '')
}

/** Every loss to try: each file removed, and cut. */
function* lossesOf(folder: string, { files, cuts }: Losses): Generator<LostFile> {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = relative(folder, join(entry.parentPath, entry.name))
    if (!entry.isFile() || !files.test(path)) continue
    const { length } = readFileSync(join(folder, path))
    yield { path, bytes: undefined }
    for (const bytes of new Set(cuts(length))) if (bytes < length) yield { path, bytes }
  }
}

/** What is wrong with how Stowage takes the loss; nothing, if all is well. */
async function faultsOf(storage: Storage, folder: string, copy: string, lost: LostFile): Promise<string[]> {
  const faults: string[] = []
  const renew = (): void => lose(folder, copy, lost)

  renew()
  const refusal = await refusalOf(storage, copy)
  if (refusal !== undefined) faults.push(...faultsOfRefusal(refusal))
  else {
    const damages = await checkFolder(storage, copy)
    const { wrong, isVisible } = await judge(storage, copy)
    faults.push(...wrong.map((question) => `wrong answer for ${question}`))
    if (isVisible && damages === 0) faults.push('it opens without what was acknowledged, and check finds nothing')
  }

  renew()
  const told = await reindex(storage, copy)
  if (typeof told !== 'number') return [...faults, ...faultsOfRefusal(told)]
  const { wrong, isVisible } = await judge(storage, copy)
  faults.push(...wrong.map((question) => `after reindex, wrong answer for ${question}`))
  if (isVisible && told === 0) faults.push('reindex says that there is no damage, and something acknowledged is gone')
  if (refusal !== undefined && (await refusalOf(storage, copy))) faults.push('after reindex, it does not open')
  return faults
}

function nameOf({ path, bytes }: LostFile): string {
  return `${path} ${bytes === undefined ? 'removed' : `cut at ${bytes}`}`
}

function lose(folder: string, copy: string, { path, bytes }: LostFile): void {
  rmSync(copy, { recursive: true, force: true })
  cpSync(folder, copy, { recursive: true })
  if (bytes === undefined) rmSync(join(copy, path))
  else truncateSync(join(copy, path), bytes)
}

async function refusalOf(storage: Storage, path: string): Promise<unknown> {
  const backend = backendIn(storage, path)
  try {
    await backend.ready?.()
    return undefined
  } catch (error) {
    return error
  } finally {
    await backend.close()
  }
}

function faultsOfRefusal(error: unknown): string[] {
  if (!(error instanceof DataFolderError)) return [`it is refused by ${String(error)}`]
  const saysHow = /"stowage reindex"|it must hold exactly/.test(error.message)
  return saysHow ? [] : [`it does not say how to mend it: ${error.message}`]
}

/** How many findings of damage there are, or why it was refused. */
async function reindex(storage: Storage, path: string): Promise<unknown> {
  let damages = 0
  const options = { path, onSalvaged: (): void => void damages++ }
  const backend = storage === 'level' ? levelBackend(options) : filesystemBackend(options)
  try {
    await backend.ready?.()
    for await (const { severity } of reindexStore(backend)) if (severity === 'damage') damages++
    return damages
  } catch (error) {
    return error
  } finally {
    await backend.close()
  }
}
