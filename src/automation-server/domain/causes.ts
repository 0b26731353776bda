import type { Change } from '../../storage/backend.ts'
import { globalKey } from '../records/keys.ts'
import { type AutomationStore, expectAbsent, expectSame } from '../records/store.ts'
import type { RunCauseCount } from '../schemas/types.ts'
import type { AutomationLimits } from './options.ts'

/** The runs that one cause has led to: a version that a person made, or a run that a person started. */
export interface CauseRecord {
  readonly runs: number
  /** Runs that would have been one too many. */
  readonly notStarted: number
}

type CountedChange = Required<Pick<Change, 'put' | 'expect'>>

/** Limits the runs that automations which start each other make of one version or one run, over all projects. */
export class Causes {
  readonly #store: AutomationStore
  readonly #limits: Pick<AutomationLimits, 'runsPerCauseMax'>

  constructor(store: AutomationStore, limits: Pick<AutomationLimits, 'runsPerCauseMax'>) {
    this.#store = store
    this.#limits = limits
  }

  /** Whether one more run may follow from it, and the record that counts this one, to be committed with it. */
  async next(causeId: string): Promise<{ readonly isFree: boolean; readonly change: CountedChange }> {
    const key = globalKey('cause', causeId)
    const stored = await this.#store.getByKey<CauseRecord>(key)
    const { runs, notStarted } = stored?.value ?? { runs: 0, notStarted: 0 }
    const isFree = runs < this.#limits.runsPerCauseMax
    const counted: CauseRecord = isFree ? { runs: runs + 1, notStarted } : { runs, notStarted: notStarted + 1 }
    return {
      isFree,
      change: {
        put: [this.#store.entry(key, counted)],
        expect: [stored === undefined ? expectAbsent(key) : expectSame(stored)],
      },
    }
  }

  async view(causeId: string): Promise<RunCauseCount> {
    const stored = await this.#store.getByKey<CauseRecord>(globalKey('cause', causeId))
    const { runs = 0, notStarted = 0 } = stored?.value ?? {}
    return { id: causeId, runs, notStarted, runsMax: this.#limits.runsPerCauseMax }
  }
}
