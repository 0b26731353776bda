import { execFile } from 'node:child_process'
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { Random } from '../../bench/model/random.ts'

/*
 * SIGKILL takes the process, but what it wrote is safe with the kernel. Here a loss of power is played: everything is undone that the process had
 * not synced. The rules are the harshest that journaling file systems allow: names in a folder change in order; a sync of the folder keeps its changes
 * so far, a sync of a file keeps its content so far and the folder's changes up to the file's own creation, and nothing else is kept.
 */

interface Change {
  readonly number: number
  /** The folder whose names changed. */
  readonly folder: string
  undo(): void
}

/** How long files are, by inode. */
type Lengths = Map<number, number>

interface Journal {
  readonly changes: readonly Change[]
  /** What of each file is synced; files that are not here were not there before, and are not synced at all. */
  readonly synced: Lengths
  /** Up to which change each folder is synced. */
  readonly durable: ReadonlyMap<string, number>
}

/** One folder tree whose process is watched by the library `shim` (power-loss.c). */
export class PowerLoss {
  readonly #root: string
  readonly #shim: string
  readonly #log: string
  readonly #graves: string
  #before: Lengths = new Map()

  /** `scratch` lies on the file system of `root`, and outside of it. */
  constructor(root: string, scratch: string, shim: string) {
    this.#root = root
    this.#shim = shim
    this.#log = join(scratch, 'changes')
    this.#graves = join(scratch, 'graves')
  }

  /**
   * Takes what is in the folder now for durable. The answer is the environment of the process that is to be watched.
   */
  arm(): NodeJS.ProcessEnv {
    rmSync(this.#graves, { recursive: true, force: true })
    mkdirSync(this.#graves)
    writeFileSync(this.#log, '')
    this.#before = lengthsOf(this.#root)
    return {
      LD_PRELOAD: this.#shim,
      POWER_LOSS_ROOT: this.#root,
      POWER_LOSS_LOG: this.#log,
      POWER_LOSS_GRAVES: this.#graves,
    }
  }

  /** After the process has ended: leaves in the folder what would be found there when the power comes back. */
  strike(random: Random): void {
    const { changes, synced, durable } = readJournal(readFileSync(this.#log, 'utf8'), this.#before)
    for (const path of [...filesBelow(this.#root), ...filesBelow(this.#graves)]) cutToSynced(path, synced, random)
    for (const change of changes.toReversed()) if (change.number > (durable.get(change.folder) ?? 0)) change.undo()
  }
}

/** Compiles a library for LD_PRELOAD; `source` is its text in C. */
export async function compileShim(
  scratch: string,
  source: string = join(import.meta.dirname, 'power-loss.c'),
): Promise<string> {
  const shim = join(scratch, `${basename(source, '.c')}.so`)
  await promisify(execFile)('gcc', [
    '-O1',
    '-Wall',
    '-Wextra',
    '-Werror',
    '-shared',
    '-fPIC',
    '-o',
    shim,
    source,
    '-ldl',
  ])
  return shim
}

function readJournal(log: string, before: Lengths): Journal {
  const changes: Change[] = []
  const synced: Lengths = new Map(before)
  const durable = new Map<string, number>()
  const created = new Map<number, { folder: string; number: number }>()
  const keep = (folder: string, number: number): void =>
    void durable.set(folder, Math.max(number, durable.get(folder) ?? 0))
  for (const [kind, first, ...rest] of log
    .split('\n')
    .slice(0, -1)
    .map((line) => line.split('\t'))) {
    const number = Number(first)
    if (kind === 'sync') {
      synced.set(number, Number(rest[0]))
      const creation = created.get(number)
      if (creation) keep(creation.folder, creation.number)
    } else if (kind === 'syncdir') {
      keep(rest[0], number)
    } else {
      if (kind === 'create') {
        synced.set(Number(rest[0]), 0)
        created.set(Number(rest[0]), { folder: dirname(rest[1]), number })
      }
      changes.push(changeOf(kind, number, rest))
    }
  }
  return { changes, synced, durable }
}

function changeOf(kind: string, number: number, fields: readonly string[]): Change {
  if (kind === 'create') return { number, folder: dirname(fields[1]), undo: () => rmSync(fields[1], { force: true }) }
  if (kind === 'link') return { number, folder: dirname(fields[0]), undo: () => rmSync(fields[0], { force: true }) }
  if (kind === 'mkdir')
    return { number, folder: dirname(fields[0]), undo: () => rmSync(fields[0], { recursive: true, force: true }) }
  if (kind === 'unlink') return { number, folder: dirname(fields[0]), undo: () => renameIfThere(fields[1], fields[0]) }
  if (kind !== 'rename') throw new Error(`the journal has a line of the kind ${kind}`)
  const [from, to, grave] = fields
  return {
    number,
    folder: dirname(to),
    undo: () => {
      renameIfThere(to, from)
      if (grave !== '-') renameIfThere(grave, to)
    },
  }
}

function renameIfThere(from: string, to: string): void {
  if (lstatSync(from, { throwIfNoEntry: false })) renameSync(from, to)
}

/** Of what was written behind the last sync nothing may be left, or some, or its length without its content. */
function cutToSynced(path: string, synced: Lengths, random: Random): void {
  const { ino, size } = statSync(path)
  const kept = Math.min(size, synced.get(ino) ?? 0)
  if (kept === size) return
  const fate = random.below(4)
  truncateSync(path, fate === 0 ? kept + random.below(size - kept) : kept)
  if (fate === 1) truncateSync(path, size)
}

function lengthsOf(root: string): Lengths {
  return new Map(
    filesBelow(root).map((path) => {
      const { ino, size } = statSync(path)
      return [ino, size]
    }),
  )
}

function filesBelow(root: string): string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}
