import type { Environment } from '../../environment.ts'
import { Yielder } from '../../async/yielder.ts'
import type { MemoryBudget, MemoryLease } from '../../memory/memory-budget.ts'
import { IdSet } from '../../object/id-set.ts'
import type { Bitmap } from '../bytes/bitmap.ts'
import { entryBytes, tableEntry } from '../pack/pack-format.ts'
import type { Pack, PackCatalog } from '../records/pack-catalog.ts'
import { isRetired } from '../records/pack-record.ts'
import type { ProjectView } from '../records/project-view.ts'
import type { PlanTables } from './plan-format.ts'

export interface DoubtParts {
  readonly catalog: PackCatalog
  readonly environment: Environment
  readonly budget: MemoryBudget
}

/** What makes it uncertain in one layout whether a plan may be sent. */
export interface PlanDoubts {
  readonly layout: number
  readonly found: readonly PlanDoubt[]
  /** The records of the project when all of these were last seen to be as the plan sends them, with no upload under way. */
  seenAt: readonly (Uint8Array | undefined)[] | undefined
}

export interface PlanDoubt {
  readonly sequence: number
  readonly unsure: Bitmap
}

/** Objects that are looked at between two looks at the clock. */
const STRETCH = 512

/**
 * The objects that a plan takes from packs which are not sure of them in this layout: those that are or were condemned.
 * For a pack that was merged, the packs to which its objects moved tell. `undefined` if that cannot be known, so that
 * the plan must be made anew: for some plans without their closure, and where no memory is free.
 *
 * `madeForLayout` is the layout for which the plan was made, if that is known.
 */
export async function doubtsOf(
  parts: DoubtParts,
  { packs, closure }: PlanTables,
  project: ProjectView,
  { madeForLayout, signal }: { readonly madeForLayout: number | undefined; readonly signal: AbortSignal },
): Promise<readonly PlanDoubt[] | undefined> {
  const { catalog } = parts
  if (closure === undefined) {
    for (const { sequence } of packs) {
      const { record } = await catalog.pack(project, sequence)
      const isSure = !isRetired(record, project.layout) && (record.owned?.count ?? record.objects) === record.objects
      // Others hold what the pack neither owns nor has condemned, and a plan that was made for this layout knew that.
      const isMadeWithout = madeForLayout === project.layout && (record.condemned?.count ?? 0) === 0
      if (!isSure && !isMadeWithout) return undefined
    }
    return []
  }
  const found: PlanDoubt[] = []
  const party = { principal: '', projectId: project.projectId }
  const lost = new LostIds(parts, project, parts.budget.open({ signal, party }))
  try {
    for (const { sequence, wanted } of closure.packs) {
      const pack = await catalog.pack(project, sequence)
      const { owned } = pack.record
      if (owned === undefined) continue
      const unsure = wanted.without(owned)
      if (isRetired(pack.record, project.layout) && !(await lost.addTo(unsure, pack, wanted))) return undefined
      if (unsure.count > 0) found.push({ sequence, unsure })
    }
  } finally {
    lost.end()
  }
  return found
}

/** Ids of objects of which packs, to which they were moved by merges, are not sure any more. */
class LostIds {
  readonly #parts: DoubtParts
  readonly #project: ProjectView
  readonly #memory: MemoryLease
  readonly #yielder: Yielder
  readonly #sets = new Map<number, Promise<IdSet | undefined>>()

  constructor(parts: DoubtParts, project: ProjectView, memory: MemoryLease) {
    this.#parts = parts
    this.#project = project
    this.#memory = memory
    this.#yielder = new Yielder(parts.environment)
  }

  /** Adds the wanted objects of a merged pack that are among them; `false` if there is no memory to find them. */
  async addTo(unsure: Bitmap, pack: Pack, wanted: Bitmap): Promise<boolean> {
    const { catalog } = this.#parts
    for (let at = pack; isRetired(at.record, this.#project.layout);) {
      at = await catalog.pack(this.#project, at.record.movedTo)
      const lost = await this.#of(at)
      if (lost === undefined) return false
      if (lost.size === 0) continue
      await catalog.withTables(pack, async ({ ids, objects }) => {
        for (let ordinal = 0; ordinal < objects; ordinal++) {
          if (wanted.has(ordinal) && lost.find(tableEntry(ids, ordinal)) !== -1) unsure.add(ordinal)
          if (ordinal % STRETCH === 0) await this.#yielder.due()
        }
      })
    }
    return true
  }

  end(): void {
    this.#memory.release()
  }

  #of(pack: Pack): Promise<IdSet | undefined> {
    const held = this.#sets.get(pack.sequence)
    if (held !== undefined) return held
    const set = this.#collected(pack)
    this.#sets.set(pack.sequence, set)
    return set
  }

  async #collected(pack: Pack): Promise<IdSet | undefined> {
    const { catalog, environment } = this.#parts
    const { objects, owned } = pack.record
    if (owned === undefined || owned.count === objects) return new IdSet(0)
    return catalog.withTables(pack, async ({ ids }) => {
      let idBytes = 0
      for (let ordinal = 0; ordinal < objects; ordinal++) if (!owned.has(ordinal)) idBytes += entryBytes(ids, ordinal)
      const count = objects - owned.count
      if (!this.#memory.tryHold(IdSet.tablesBytes(count) + idBytes)) return undefined
      const set = new IdSet(count, new Uint8Array(idBytes), environment.hashKey)
      for (let ordinal = 0; ordinal < objects; ordinal++) {
        if (!owned.has(ordinal)) set.add(tableEntry(ids, ordinal))
        if (ordinal % STRETCH === 0) await this.#yielder.due()
      }
      return set
    })
  }
}
