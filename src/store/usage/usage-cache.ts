import { createHash } from 'node:crypto'
import type { Environment } from '../../environment.ts'
import { StowageError } from '../../errors.ts'
import type { MemoryBudget } from '../../memory/memory-budget.ts'
import type { SignalOptions } from '../../object/graph-store.ts'
import type { GraphRoot, ProjectUsage, UsageCounter } from '../../object/roots.ts'
import type { BlobStore, RecordStore } from '../../storage/backend.ts'
import { linkedAbort, orAborted } from '../../async/abort.ts'
import type { Closure } from '../closure/closure.ts'
import { planBlobName } from '../records/keys.ts'
import type { ProjectView } from '../records/project-view.ts'
import { pendingPacks, viewProject } from '../records/projects.ts'
import { readTotals } from '../records/totals.ts'
import { BYTES_PER_OBJECT, countUsage } from './count-usage.ts'

/** Results that are kept, one for each project. */
const PROJECTS_MAX = 100
/** The memory of counting and its result for each root. */
const BYTES_PER_ROOT = 1_024
/** How long a request waits for the counting. */
const WAIT_MS = 20_000

export interface UsageCacheParts {
  readonly records: RecordStore
  readonly blobs: BlobStore
  readonly environment: Environment
  readonly budget: MemoryBudget
  readonly closureOf: (projectId: string, rootId: string, signal: AbortSignal) => Promise<Closure | undefined>
  /** The same, where each object lies now. */
  readonly walkedClosureOf: UsageCacheParts['closureOf']
  /** Aborts when the store closes. */
  readonly closing: AbortSignal
}

const EMPTY: ProjectUsage = {
  objects: 0,
  jsonBytes: 0,
  storedBytes: 0,
  retiredBytes: 0,
  planBytes: 0,
  unreferencedObjects: 0,
  unreferencedJsonBytes: 0,
  groups: [],
  roots: [],
}

/** What holds until the project changes. Plans come and go without a change of it. */
type Counted = Omit<ProjectUsage, 'planBytes'>

interface Counting {
  readonly key: string
  readonly result: Promise<Counted>
}

/**
 * Counts each project once for each state of it: the result is valid until an upload, a version or a pin changes its
 * basis.
 */
export class UsageCache implements UsageCounter {
  readonly #parts: UsageCacheParts
  /** By project, in the order of their beginning. */
  readonly #countings = new Map<string, Counting>()

  constructor(parts: UsageCacheParts) {
    this.#parts = parts
  }

  async usage(projectId: string, roots: readonly GraphRoot[], { signal }: SignalOptions): Promise<ProjectUsage> {
    const project = await viewProject(this.#parts.records, projectId, signal)
    if (project === undefined) return EMPTY
    // Before the counting: what is written meanwhile may be missing in it.
    const pending = await pendingPacks(this.#parts.records, project, { signal })
    const key = keyOf(project, pending, roots)
    const known = this.#countings.get(projectId)
    const counted = await this.#inTime(known?.key === key ? known.result : this.#begin(project, roots, key), signal)
    return { ...counted, planBytes: await this.#planBytes(projectId, signal) }
  }

  /** Resolves when nothing is being counted. */
  async settled(): Promise<void> {
    await Promise.allSettled([...this.#countings.values()].map(({ result }) => result))
  }

  #begin(project: ProjectView, roots: readonly GraphRoot[], key: string): Promise<Counted> {
    const { projectId } = project
    const result = this.#count(project, roots)
    this.#countings.delete(projectId)
    this.#countings.set(projectId, { key, result })
    const [oldest] = this.#countings.keys()
    if (this.#countings.size > PROJECTS_MAX) this.#countings.delete(oldest)
    result.catch(() => {
      if (this.#countings.get(projectId)?.result === result) this.#countings.delete(projectId)
    })
    return result
  }

  async #count(project: ProjectView, roots: readonly GraphRoot[]): Promise<Counted> {
    const { records, blobs, budget, closing, closureOf, walkedClosureOf, environment } = this.#parts
    const { totals } = await readTotals({ records, blobs, environment }, project)
    const memory = budget.open({ signal: closing, party: { principal: '', projectId: project.projectId } })
    try {
      await memory.hold(totals.objects * BYTES_PER_OBJECT + roots.length * BYTES_PER_ROOT)
      const counted = await countUsage(
        {
          records,
          blobs,
          environment,
          closureOf: (rootId, signal) => closureOf(project.projectId, rootId, signal),
          walkedClosureOf: (rootId, signal) => walkedClosureOf(project.projectId, rootId, signal),
        },
        project,
        roots,
        closing,
      )
      return { ...counted, storedBytes: totals.storedBytes }
    } finally {
      memory.release()
    }
  }

  /** Only a listing knows those that lost their records. */
  async #planBytes(projectId: string, signal: AbortSignal): Promise<number> {
    let bytes = 0
    for await (const plans of this.#parts.blobs.list(planBlobName(projectId, ''), { signal }))
      for (const { sizeBytes } of plans) bytes += sizeBytes
    return bytes
  }

  async #inTime(result: Promise<Counted>, signal: AbortSignal): Promise<Counted> {
    const late = new StowageError('overloaded', 'the usage of this project is not counted yet; try again shortly', {
      headers: { 'Retry-After': '5' },
    })
    const { controller: waiting, unlink } = linkedAbort(signal)
    const timer = this.#parts.environment.setTimer(WAIT_MS, () => waiting.abort(late))
    try {
      return await orAborted(result, waiting.signal)
    } finally {
      timer.cancel()
      unlink()
    }
  }
}

/** `pending` are the numbers of the packs whose ids may not all be written. */
function keyOf(
  { generation, sequence, layout }: ProjectView,
  pending: readonly number[],
  roots: readonly GraphRoot[],
): string {
  const hash = createHash('sha256')
  for (const { kind, id, groupId, rootObjectId } of roots)
    hash.update(JSON.stringify([kind, id, groupId, rootObjectId]))
  return `${generation} ${sequence} ${layout} ${pending.join()} ${hash.digest('hex')}`
}
