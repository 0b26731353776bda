import { StowageError } from '../../../errors.ts'
import type { FinalRunStatus, JsonObject } from '../../author/run-data.ts'
import { plainJson } from './annotations.ts'
import type { FinalReport } from './reporter.ts'
import { checkText } from './texts.ts'

/** The one final status that a function sets for its run. */
export class Mark {
  #given: FinalReport | undefined

  get given(): FinalReport | undefined {
    return this.#given
  }

  /** Throws `conflict` for a second mark, `TypeError` for an empty message and a result that JSON cannot hold. */
  set(status: FinalRunStatus, message: string, result?: JsonObject | null): void {
    if (this.#given !== undefined)
      throw new StowageError(
        'conflict',
        `the run is already marked as ${this.#given.status}, and a run has exactly one mark; the second one was ${status}`,
      )
    checkText('the message of a mark', message)
    this.#given = {
      status,
      message,
      ...(result === undefined || result === null ? {} : { result: plainJson('the result of a run', result) }),
    }
  }
}
