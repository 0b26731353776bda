import { hash } from 'node:crypto'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { levelBackend } from '../../adapters/level/index.ts'
import type { Random } from '../../bench/model/random.ts'
import { createObjectService, type ObjectService, openAccess, type StorageBackend } from '../../src/index.ts'
import { LOCK_FILE } from '../../src/data-folder/folder-lock.ts'
import { checkStore } from '../../src/store/upkeep/check.ts'
import { createPackStore } from '../../src/store/pack-store.ts'
import { textsOfArray, textsOfLines } from './client.ts'
import type { Storage } from './server.ts'

/** What is done to a file. */
export interface Damage {
  /** Relative to the data folder. */
  readonly path: string
  readonly at: number
  readonly apply: (bytes: Buffer) => Buffer
  readonly name: string
}

/** What clients got from a damaged folder. */
export interface Judgement {
  /** Answers that a client would have accepted, and that were not true. */
  readonly wrong: readonly string[]
  /** Whether anything differed from the answers of the whole folder, errors included. */
  readonly isVisible: boolean
}

const PROJECT = 'site'
const REMOVED_PROJECT = 'removed'
const LATE_PROJECT = 'late'
const GROUPS = 10
const LEAVES_PER_GROUP = 105
const PAGE_BYTES = 4_096
const ROOT = 'root'

/** A closure that is large enough for its plan to be stored, in packs of their own and inside of records. */
const TEXTS: ReadonlyMap<string, string> = new Map(makeTexts())

/** Uploaded last, so that their records are in the log: in a pack inside of its record, and in one that is a file. */
const LATE_TEXTS: ReadonlyMap<string, string> = new Map(
  [2, 3_000].map((hashes) => [
    `late-${hashes}`,
    JSON.stringify({ id: `late-${hashes}`, data: incompressible('late', hashes) }),
  ]),
)

function* makeTexts(): Generator<[string, string]> {
  const groups = Array.from({ length: GROUPS }, (_, group) => `group-${group}`)
  for (const [group, id] of groups.entries()) {
    const leaves = Array.from({ length: LEAVES_PER_GROUP }, (_, leaf) => `leaf-${group}-${leaf}`)
    for (const leaf of leaves)
      yield [leaf, JSON.stringify({ id: leaf, data: incompressible(leaf, leaf.endsWith('-7') ? 200 : 3) })]
    yield [id, JSON.stringify({ id, parts: leaves.map((referencedId) => ({ referencedId })) })]
  }
  yield [ROOT, JSON.stringify({ id: ROOT, parts: groups.map((referencedId) => ({ referencedId })) })]
}

function textOf(id: string): string | undefined {
  return TEXTS.get(id) ?? LATE_TEXTS.get(id)
}

function incompressible(seed: string, hashes: number): string {
  return Array.from({ length: hashes }, (_, at) => hash('sha256', `${seed} ${at}`, 'base64')).join('')
}

export function backendIn(storage: Storage, path: string): StorageBackend {
  return storage === 'level' ? levelBackend({ path }) : filesystemBackend({ path })
}

/**
 * Fills a folder that has one of each kind of file, with what is in tables of the database and what is in its log. The
 * copy beside it is what a crash would have left of it.
 */
export async function fillFolder(storage: Storage, path: string, crashedPath: string): Promise<void> {
  const ids = [...TEXTS.keys()]
  const firstSmall = ids.length - 2 * (LEAVES_PER_GROUP + 1)
  await withService(storage, path, async (service) => {
    await post(service, REMOVED_PROJECT, ids)
    await post(service, PROJECT, ids.slice(0, firstSmall))
    await service.project(REMOVED_PROJECT).remove()
  })
  // Opening once more moves what is in the log into a table.
  await withService(storage, path, async (service) => {
    await post(service, PROJECT, ids.slice(firstSmall, firstSmall + 100))
    await post(service, PROJECT, ids.slice(firstSmall + 100))
  })
  const store = createPackStore({ backend: backendIn(storage, path) })
  await store.ready()
  ;(await store.closure(PROJECT, ROOT, { signal: new AbortController().signal }))?.release()
  await store.idle()
  await store.close()
  await withService(storage, path, async (service) => {
    for (const id of LATE_TEXTS.keys()) await post(service, LATE_PROJECT, [id])
    cpSync(path, crashedPath, { recursive: true })
    // It names this process, which lives.
    rmSync(join(crashedPath, LOCK_FILE))
  })
}

/** Asks for everything in every way, in a copy of the folder. */
export async function judge(storage: Storage, path: string): Promise<Judgement> {
  const wrong: string[] = []
  let isVisible = false
  const see = (what: string, verdict: 'same' | 'different' | 'wrong'): void => {
    if (verdict === 'wrong') wrong.push(what)
    if (verdict !== 'same') isVisible = true
  }
  try {
    await withService(storage, path, async (service) => {
      for (const question of QUESTIONS) see(question.name, await verdictOf(service, question))
    })
  } catch {
    isVisible = true
  }
  return { wrong, isVisible }
}

/** What `check` says: the number of findings of damage, or that the folder cannot be opened. */
export async function checkFolder(storage: Storage, path: string): Promise<number | 'refused'> {
  const backend = backendIn(storage, path)
  let damages = 0
  try {
    await backend.ready?.()
    for await (const { severity } of checkStore(backend)) if (severity === 'damage') damages++
    return damages
  } catch {
    return 'refused'
  } finally {
    await backend.close()
  }
}

interface Question {
  readonly name: string
  readonly path: string
  readonly accept?: string
  readonly coding?: 'gzip' | 'identity'
  readonly body?: unknown
  /** What the whole folder answers. */
  readonly ids: readonly string[]
}

const ALL: readonly string[] = [...TEXTS.keys()]
const SOME_SINGLES: readonly string[] = [ROOT, 'group-3', 'leaf-0-0', 'leaf-0-7', 'leaf-9-104', 'leaf-8-7']
const ROOT_PATH = `/objects/${PROJECT}/${ROOT}`
const LIST = { path: `/api/getobjects/${PROJECT}`, body: { objects: JSON.stringify(ALL) }, ids: ALL }

const QUESTIONS: readonly Question[] = [
  { name: 'lines, gzip', path: ROOT_PATH, accept: 'text/plain', coding: 'gzip', ids: ALL },
  { name: 'lines', path: ROOT_PATH, accept: 'text/plain', coding: 'identity', ids: ALL },
  { name: 'array, gzip', path: ROOT_PATH, accept: 'application/json', coding: 'gzip', ids: ALL },
  { name: 'archive', path: `${ROOT_PATH}?archive=gzip`, ids: ALL },
  { name: 'list of lines, gzip', ...LIST, accept: 'text/plain', coding: 'gzip' },
  { name: 'list as array', ...LIST, accept: 'application/json', coding: 'identity' },
  {
    name: 'object-stream',
    path: `/api/v2/projects/${PROJECT}/object-stream`,
    body: { objectIds: ALL },
    coding: 'gzip',
    ids: ALL,
  },
  { name: 'lines, gzip, once more', path: ROOT_PATH, accept: 'text/plain', coding: 'gzip', ids: ALL },
  {
    name: 'of a removed project',
    path: `/api/getobjects/${REMOVED_PROJECT}`,
    body: { objects: JSON.stringify(ALL) },
    accept: 'text/plain',
    ids: [],
  },
  {
    name: 'of the last uploads',
    path: `/api/getobjects/${LATE_PROJECT}`,
    body: { objects: JSON.stringify([...LATE_TEXTS.keys()]) },
    accept: 'text/plain',
    ids: [...LATE_TEXTS.keys()],
  },
  ...SOME_SINGLES.map((id) => ({
    name: `single ${id}`,
    path: `/objects/${PROJECT}/${id}/single`,
    accept: 'text/plain',
    ids: [id],
  })),
]

async function verdictOf(service: ObjectService, question: Question): Promise<'same' | 'different' | 'wrong'> {
  const { ids } = question
  const answer = await answerTo(service, question)
  if (answer === undefined) return ids.length === 0 ? 'same' : 'different'
  const { texts, missing } = answer
  for (const [id, text] of texts) if (textOf(id) !== text || !ids.includes(id)) return 'wrong'
  if (texts.size === ids.length) return 'same'
  return missing > 0 || ids.length === 0 ? 'different' : 'wrong'
}

/** What a client makes of the answer; `undefined` where it sees that something is wrong. */
async function answerTo(
  service: ObjectService,
  question: Question,
): Promise<{ readonly texts: ReadonlyMap<string, string>; readonly missing: number } | undefined> {
  const { path, accept, coding = 'identity', body, ids } = question
  const headers = {
    'Accept-Encoding': coding,
    ...(accept === undefined ? {} : { Accept: accept }),
    ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
  }
  const request = body === undefined ? { headers } : { headers, method: 'POST', body: JSON.stringify(body) }
  const response = await service.fetch(new Request(`http://in.process${path}`, request))
  let bytes: Buffer
  try {
    bytes = Buffer.from(await response.arrayBuffer())
    if (response.status !== 200) return undefined
    const isZipped =
      response.headers.get('content-encoding') === 'gzip' || response.headers.get('content-type') === 'application/gzip'
    if (isZipped) bytes = gunzipSync(bytes)
  } catch {
    return undefined
  }
  const missing = Number(response.headers.get('stowage-missing-objects'))
  const text = bytes.toString()
  if (path.endsWith('/single')) return { texts: new Map([[ids[0], text]]), missing }
  return {
    texts: response.headers.get('content-type')?.includes('json') ? textsOfArray(text) : textsOfLines(text),
    missing,
  }
}

async function withService(
  storage: Storage,
  path: string,
  use: (service: ObjectService) => Promise<void>,
): Promise<void> {
  const service = createObjectService({ backend: backendIn(storage, path), access: openAccess() })
  try {
    await service.ready()
    await use(service)
  } finally {
    await service.close({ graceMs: 0 })
  }
}

async function post(service: ObjectService, projectId: string, ids: readonly string[]): Promise<void> {
  const body = `[${ids.map(textOf).join(',')}]`
  const response = await service.fetch(
    new Request(`http://in.process/objects/${projectId}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body,
    }),
  )
  if (response.status !== 200)
    throw new Error(`the upload was answered with ${response.status}: ${await response.text()}`)
}

/**
 * Files with something in them, but for those that LevelDB writes for people, and the note of how long its files are.
 */
export function filesOf(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !/^LOG(\.old)?$|^LOCK$|^lengths$/.test(entry.name))
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .filter((path) => readFileSync(join(folder, path)).length > 0)
    .sort()
}

/**
 * A flipped bit, or now and then a page of zeros or a missing end, anywhere in the file. A tombstone keeps its end: what
 * is left of it would be what a crash leaves, which is no damage.
 */
export function someDamage(folder: string, path: string, random: Random): Damage {
  const { length } = readFileSync(join(folder, path))
  const at = random.below(length)
  const kind = random.below(10)
  if (kind === 0 && !path.includes('/tombstone-'))
    return { path, at, name: `${path} cut at ${at} of ${length}`, apply: (bytes) => bytes.subarray(0, at) }
  if (kind === 1)
    return {
      path,
      at,
      name: `${path} zeroed from ${at} of ${length}`,
      apply: (bytes) => bytes.fill(0, at, Math.min(at + PAGE_BYTES, length)),
    }
  return someFlippedBit(folder, path, random)
}

export function someFlippedBit(folder: string, path: string, random: Random): Damage {
  const { length } = readFileSync(join(folder, path))
  const at = random.below(length)
  const bit = random.below(8)
  const apply = (bytes: Buffer): Buffer => {
    bytes[at] ^= 1 << bit
    return bytes
  }
  return { path, at, name: `${path} bit ${bit} of byte ${at} of ${length}`, apply }
}

/** A copy of the folder with the damage in it; false if that changes nothing, as zeros over zeros. */
export function damagedCopy(folder: string, copy: string, { path, apply }: Damage): boolean {
  rmSync(copy, { recursive: true, force: true })
  mkdirSync(copy)
  cpSync(folder, copy, { recursive: true })
  const before = readFileSync(join(copy, path))
  const damaged = apply(Buffer.from(before))
  writeFileSync(join(copy, path), damaged)
  return !damaged.equals(before)
}
