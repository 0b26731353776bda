import type { KeyedMutex } from '../../async/keyed-mutex.ts'
import type { Entry, Expectation } from '../../storage/backend.ts'
import {
  type ChangedObjects,
  changeObjects,
  type ChangeParts,
  type ChangeTerms,
  type Decision,
  type ObjectChange,
} from '../records/change-objects.ts'
import type { CommittedPack } from '../records/committed-pack.ts'
import { packKey } from '../records/keys.ts'
import { areAsExpected, type FoundValues } from '../records/lost-try.ts'
import { LoweredTotals } from '../records/lowered-totals.ts'
import type { ObjectRecord } from '../records/object-record.ts'
import { encodePackRecord } from '../records/pack-record.ts'

export interface TakeOverParts extends ChangeParts {
  /** Those of the committer. */
  readonly turns: KeyedMutex
}

/** An object with its record in the pack that takes it over. */
interface TakenObject {
  readonly id: Uint8Array
  readonly record: ObjectRecord
}

/**
 * Takes condemned objects over into a pack that brings them again. Does nothing if the pack is applied already: by then
 * its objects may have been condemned, and lie in a merged pack. A late call must not bring them back into a pack that
 * holds nothing any more.
 */
export async function takeOver(
  parts: TakeOverParts,
  pack: CommittedPack,
  objects: readonly TakenObject[],
): Promise<ChangedObjects> {
  const ids = objects.map(({ id }) => id)
  const decide = (record: ObjectRecord | undefined, at: number): Decision =>
    record === undefined || (record.state === 'condemned' && record.sequence !== pack.sequence)
      ? objects[at].record
      : 'keep'
  try {
    return await changeObjects(parts, pack, ids, decide, undefined, new TakeOverTerms(parts, pack))
  } catch (error) {
    if (!(error instanceof AppliedMeanwhileError)) throw error
    return changeObjects(parts, pack, ids, () => 'keep')
  }
}

/** Another call applied the pack, perhaps long ago. */
class AppliedMeanwhileError extends Error {
  override readonly name = 'AppliedMeanwhileError'
}

/** Expects the record of a pack that is not applied yet, besides the totals. */
class TakeOverTerms implements ChangeTerms {
  readonly #parts: TakeOverParts
  readonly #record: Expectation
  readonly #totals: LoweredTotals

  constructor(parts: TakeOverParts, pack: CommittedPack) {
    const key = packKey(pack.projectId, pack.generation, pack.sequence)
    this.#parts = parts
    this.#record = { key, value: encodePackRecord(key, pack.record) }
    this.#totals = new LoweredTotals(parts, pack)
  }

  get expect(): readonly Expectation[] {
    return [this.#record, ...this.#totals.expect]
  }

  inTurn<T>(work: () => Promise<T>): Promise<T> {
    return this.#totals.inTurn(work)
  }

  /** Throws `AppliedMeanwhileError`. */
  async renew(found?: FoundValues): Promise<boolean> {
    const record = found?.slice(0, 1) ?? (await this.#parts.records.getMany([this.#record.key]))
    if (!areAsExpected(record, [this.#record])) throw new AppliedMeanwhileError()
    return this.#totals.renew(found?.slice(1))
  }

  put(changes: readonly ObjectChange[]): readonly Entry[] {
    return this.#totals.put(changes)
  }
}
