import type { KeyedMutex } from '../../async/keyed-mutex.ts'
import type { Entry, Expectation, RecordStore } from '../../storage/backend.ts'
import type { ChangeTerms, ObjectChange } from './change-objects.ts'
import { totalsKey } from './keys.ts'
import type { FoundValues } from './lost-try.ts'
import type { StoredProject } from './project-view.ts'
import { asStoredTotals, changedTotals, readStoredTotals, type StoredTotals, subtractTotals } from './totals.ts'

interface TotalsParts {
  readonly records: RecordStore
  /** Those of the committer. */
  readonly turns: KeyedMutex
}

/**
 * The totals of a project, in commits that take lines away from its packs: those of freed objects, and those of
 * condemned ones that another pack replaces. So the totals count each object once, wherever a crash cuts the work off.
 */
export class LoweredTotals implements ChangeTerms {
  readonly #parts: TotalsParts
  readonly #project: StoredProject
  #stored: StoredTotals | undefined

  constructor(parts: TotalsParts, project: StoredProject) {
    this.#parts = parts
    this.#project = project
  }

  get expect(): readonly Expectation[] {
    return this.#stored === undefined ? [] : [this.#stored.expectation]
  }

  inTurn<T>(work: () => Promise<T>): Promise<T> {
    return this.#parts.turns.run(this.#project.projectId, work)
  }

  async renew(found?: FoundValues): Promise<boolean> {
    const { projectId, generation } = this.#project
    this.#stored =
      found === undefined
        ? await readStoredTotals(this.#parts.records, this.#project)
        : asStoredTotals(totalsKey(projectId, generation), found[0])
    return true
  }

  put(changes: readonly ObjectChange[]): readonly Entry[] {
    if (this.#stored === undefined) return []
    let objects = 0
    let jsonBytes = 0
    for (const { before, after } of changes) {
      if (before === undefined || (after?.sequence === before.sequence && after.ordinal === before.ordinal)) continue
      objects++
      jsonBytes += before.textBytes
    }
    return changedTotals(this.#stored, (totals) => subtractTotals(totals, { objects, jsonBytes, storedBytes: 0 }))
  }
}
