import type { Entry, Expectation, RecordStore } from '../../storage/backend.ts'
import type { ChangeTerms, ObjectChange } from './change-objects.ts'
import type { FoundValues } from './lost-try.ts'
import type { StoredProject } from './project-view.ts'
import { asStoredTotals, changedTotals, readStoredTotals, type StoredTotals, subtractTotals } from './totals.ts'

/**
 * The totals of a project, in commits that take lines away from its packs: those of freed objects, and those of
 * condemned ones that another pack replaces. So the totals count each object once, wherever a crash cuts the work off.
 */
export class LoweredTotals implements ChangeTerms {
  #stored: StoredTotals

  private constructor(stored: StoredTotals) {
    this.#stored = stored
  }

  static async of(records: RecordStore, project: StoredProject): Promise<LoweredTotals> {
    return new LoweredTotals(await readStoredTotals(records, project))
  }

  get expect(): readonly Expectation[] {
    return [this.#stored.expectation]
  }

  renew([value]: FoundValues): void {
    this.#stored = asStoredTotals(this.#stored.expectation.key, value)
  }

  put(changes: readonly ObjectChange[]): readonly Entry[] {
    let objects = 0
    let jsonBytes = 0
    for (const { before, after } of changes) {
      if (before === undefined || (after?.sequence === before.sequence && after.ordinal === before.ordinal)) continue
      objects++
      jsonBytes += before.textBytes
    }
    return changedTotals(this.#stored, (totals) => subtractTotals(totals, { objects, jsonBytes, storedBytes: 0 }))
  }

  made([entry]: readonly Entry[]): void {
    if (entry !== undefined) this.#stored = asStoredTotals(entry.key, entry.value)
  }
}
