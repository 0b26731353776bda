import {
  collectAll,
  type CollectAllOptions,
  type CollectionTotals,
  compactAll,
  type CompactAllOptions,
  type CompactionTotals,
} from './all-projects.ts'
import type { ProjectUpkeep } from './project-upkeep.ts'
import { StorageUpkeep, type UpkeepDeps } from './upkeep.ts'
import { type ScheduleParts, UpkeepSchedule } from './upkeep-schedule.ts'

export interface ServiceUpkeepParts extends UpkeepDeps, Pick<ScheduleParts, 'compaction' | 'onError'> {
  /** Ids of the projects that hold something. */
  readonly projects: () => AsyncIterable<readonly string[]>
}

/** Collection and compaction of a service: of one project, of all, and by the schedule. */
export class ServiceUpkeep {
  readonly #storage: StorageUpkeep
  readonly #schedule: UpkeepSchedule
  readonly #projects: ServiceUpkeepParts['projects']

  /** Throws `RangeError` for settings that cannot be, `TypeError` over a host's own `ObjectStore`. */
  constructor(parts: ServiceUpkeepParts) {
    const { store, collection, compaction } = parts
    if (
      (store.collector === undefined && collection !== undefined) ||
      (store.compactor === undefined && compaction !== undefined)
    )
      throw new TypeError(
        "collection and compaction need a storage backend; a host's own object store keeps its objects itself",
      )
    this.#storage = new StorageUpkeep(parts)
    this.#projects = parts.projects
    this.#schedule = new UpkeepSchedule({
      ...parts,
      projects: () => parts.store.projects(),
      upkeepOf: (projectId) => this.of(projectId),
    })
  }

  of(projectId: string): ProjectUpkeep {
    return this.#storage.of(projectId)
  }

  collect(options: CollectAllOptions = {}): Promise<CollectionTotals> {
    return collectAll({ projects: this.#projects, upkeepOf: (projectId) => this.of(projectId) }, options)
  }

  compact(options: CompactAllOptions = {}): Promise<CompactionTotals> {
    return compactAll({ projects: this.#projects, upkeepOf: (projectId) => this.of(projectId) }, options)
  }

  start(): void {
    this.#schedule.start()
  }

  stop(): Promise<void> {
    return this.#schedule.stop()
  }
}
