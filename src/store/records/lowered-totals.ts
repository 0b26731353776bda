import type { ProjectTotals } from '../../object/graph-store.ts'
import type { Entry, Expectation, RecordStore } from '../../storage/backend.ts'
import type { ChangeTerms, ObjectChange } from './change-objects.ts'
import type { StoredProject } from './project-view.ts'
import { type ReadTotals, readStoredTotals, subtractTotals, totalsEntry } from './totals.ts'

/**
 * The totals of a project, in commits that take lines away from its packs: those of freed objects, and those of
 * condemned ones that another pack replaces. So the totals count each object once, wherever a crash cuts the work off.
 */
export class LoweredTotals implements ChangeTerms {
  readonly #records: RecordStore
  readonly #project: StoredProject
  /** `undefined` if the totals will be counted anew. */
  #stored: ReadTotals | undefined
  #lowered: ProjectTotals | undefined

  private constructor(records: RecordStore, project: StoredProject, stored: ReadTotals | undefined) {
    this.#records = records
    this.#project = project
    this.#stored = stored
  }

  static async of(records: RecordStore, project: StoredProject): Promise<LoweredTotals> {
    return new LoweredTotals(records, project, await readStoredTotals(records, project))
  }

  get expect(): readonly Expectation[] {
    return this.#stored === undefined ? [] : [this.#stored.expectation]
  }

  async renew(): Promise<void> {
    this.#stored = await readStoredTotals(this.#records, this.#project)
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
    this.#lowered = subtractTotals(this.#stored.totals, { objects, jsonBytes, storedBytes: 0 })
    return [totalsEntry(this.#stored, this.#lowered)]
  }

  made([entry]: readonly Entry[]): void {
    if (entry !== undefined && this.#lowered !== undefined)
      this.#stored = { totals: this.#lowered, expectation: { key: entry.key, value: entry.value } }
  }
}
