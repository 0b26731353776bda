import type { Environment } from '../../environment.ts'
import type { CallOptions, Entry, RangeBounds, RecordStore } from '../../storage/backend.ts'
import { garbageKey, headKey, keyBounds, keyParts, parseHex } from './keys.ts'
import type { ProjectView, StoredProject } from './project-view.ts'
import { decodeHead, encodeMark, encodeMarkAgain, type ProjectHead } from './records.ts'

/** A project's record as it was read, with its bytes, which the next change of it expects. */
export interface ReadHead {
  readonly key: Uint8Array
  readonly bytes: Uint8Array | undefined
  readonly head: ProjectHead | undefined
}

export async function readHead(records: RecordStore, projectId: string, signal?: AbortSignal): Promise<ReadHead> {
  const key = headKey(projectId)
  const [bytes] = await records.getMany([key], { signal })
  return asHead(key, bytes)
}

export function asHead(key: Uint8Array, bytes: Uint8Array | undefined): ReadHead {
  return { key, bytes, head: bytes === undefined ? undefined : decodeHead(key, bytes) }
}

/** The project as readers see it; `undefined` if it does not exist, or was removed. */
export async function viewProject(
  records: RecordStore,
  projectId: string,
  signal?: AbortSignal,
): Promise<ProjectView | undefined> {
  const { head } = await readHead(records, projectId, signal)
  if (head === undefined || head.removed) return undefined
  return viewOf(projectId, head)
}

export function viewOf(projectId: string, { generation, sequence, layout }: ProjectHead): ProjectView {
  return { projectId, generation, sequence, layout }
}

/** The generation that an upload writes to: a removed project begins a new one. */
export function writingGeneration(head: ProjectHead | undefined): number {
  if (head === undefined) return 1
  return head.removed ? head.generation + 1 : head.generation
}

/** Whether a generation is removed for good. If the project's record is lost this is unknown, and the answer is no. */
export function isRemoved(head: ProjectHead | undefined, generation: number): boolean {
  if (head === undefined) return false
  return head.generation > generation || (head.generation === generation && head.removed)
}

/** Whether no upload of the project is between its commit and its response: then every id of every pack is written. */
export async function isQuiet(records: RecordStore, project: StoredProject): Promise<boolean> {
  return (await firstPending(records, project)) === undefined
}

/** The number of the first pack that is committed and may not have all of its ids written yet. */
export async function firstPending(records: RecordStore, project: StoredProject): Promise<number | undefined> {
  const [first] = await pendingPacks(records, project, { limit: 1 })
  return first
}

/** The numbers of such packs: of all of them, or of the first. */
export async function pendingPacks(
  records: RecordStore,
  { projectId, generation }: StoredProject,
  options: CallOptions & Pick<RangeBounds, 'limit'> = {},
): Promise<readonly number[]> {
  const { limit, signal } = options
  const bounds = { ...keyBounds('pending', projectId, generation), ...(limit === undefined ? {} : { limit }) }
  const numbers: number[] = []
  for await (const entries of records.range(bounds, { signal }))
    for (const { key } of entries) numbers.push(parseHex(keyParts(key)[2]))
  return numbers
}

export async function* listProjects(records: RecordStore): AsyncGenerator<readonly string[]> {
  for await (const entries of records.range(keyBounds('head'))) {
    const ids = entries.filter(({ key, value }) => !decodeHead(key, value).removed).map(({ key }) => keyParts(key)[0])
    if (ids.length > 0) yield ids
  }
}

/** Marks a removed generation of a project, whose space is still to be freed. */
export function garbageEntry(projectId: string, generation: number): Entry {
  const key = garbageKey(projectId, generation)
  return { key, value: encodeMark(key) }
}

/** The mark for a sweep that must follow one that is under way: that one removes only the mark that it found. */
export function garbageEntryAgain({ projectId, generation }: StoredProject, environment: Environment): Entry {
  const key = garbageKey(projectId, generation)
  return { key, value: encodeMarkAgain(key, environment.randomBytes(8)) }
}
