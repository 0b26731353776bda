import type { Clock, Environment } from '../../../environment.ts'
import type { AutomationRunData, FinalRunStatus, JsonObject, LogLevel } from '../../author/run-data.ts'
import type { RunBackend } from '../run-backend.ts'
import type { RunRetryOptions } from './retry.ts'

/** The data of a run, and the place it reports to. */
export interface RunOptions {
  /** The place that the run reports to. */
  readonly backend: RunBackend
  /** The data of the run. */
  readonly runData: AutomationRunData
  /** As the run file has them. */
  readonly inputs: JsonObject | null
  /**
   * Ends the run: with `RunCanceled` as its reason nothing more is reported of it, with any other reason it is an
   * exception.
   */
  readonly signal?: AbortSignal
  /**
   * Texts that are kept out of all reports of the run, besides the secrets among the inputs: for example the run's
   * token.
   */
  readonly secrets?: readonly string[]
  /** The wall clock; that of the system by default. */
  readonly clock?: Clock
  /** Timers and randomness; those of the process by default. */
  readonly environment?: Environment
  /** 10,000 by default. */
  readonly leaseIntervalMs?: number
  /** How long annotations, log lines and progress wait to be reported together. 500 by default. */
  readonly flushIntervalMs?: number
  /** How long the delivery of the final report is retried. 300,000 by default. */
  readonly deliveryTimeoutMs?: number
  /** How failed calls to the backend are repeated. */
  readonly retry?: RunRetryOptions
  /** Gets every line of the log, without secrets. */
  readonly onLine?: (level: LogLevel, line: string) => void
}

/** The end of a run. */
export interface RunOutcome {
  /** The final status. */
  readonly status: FinalRunStatus | 'canceled'
  /** The message of the final status. */
  readonly message: string
  /** The result that the function passed with its mark, if any. */
  readonly result?: JsonObject
  /** Whether the other side accepted the final report. A canceled run has none. */
  readonly isDelivered: boolean
}
