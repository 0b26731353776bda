import type { Environment } from '../../environment.ts'
import type { LogLine, RunFile } from '../../automation/author/run-data.ts'
import type { RunBackend } from '../../automation/runtime/run-backend.ts'
import type { Run } from '../schemas/types.ts'

/** A run that is to start. It holds secrets and a token: nothing of it may be logged. */
export interface RunStart {
  /** The project of the run. */
  readonly projectId: string
  /** The run, as it was claimed. */
  readonly run: Run
  /** The contents of a function's run file: the token, the inputs with their secrets, the data of the run. */
  readonly runFile: RunFile
  /** The place that a function in this process reports to. */
  readonly backend: RunBackend
  /**
   * Adds log lines that the function does not report itself, such as the output of its process, without secrets. Lines
   * beyond the limit of a run are omitted.
   */
  readonly addLogs: (lines: readonly LogLine[]) => Promise<void>
  /** Texts that must not appear in logs and messages: the secrets among the inputs, and the token. */
  readonly secretTexts: readonly string[]
  /** When the run must have ended, by the service's clock. `cancel` is called then. */
  readonly deadlineMs: number
  /** Time, timers and randomness for a function in this process. */
  readonly environment: Environment
}

/**
 * The reason why a run must stop: a person canceled it, it took too long, it or its project has left this server, it
 * has its final status and is still running, or the service is closing.
 */
export type StopReason = 'canceled' | 'timeout' | 'lost' | 'ended' | 'closing'

/** A run in progress. */
export interface RunHandle {
  /**
   * Asks the function to stop, and forces it to after a while, or after `graceMs` if given. May be called again. Must
   * not throw.
   */
  cancel(reason: StopReason, graceMs?: number): void
  /**
   * Resolves once all activity of the run has ended, whatever it reported. A run without a final status by then becomes
   * an exception. Its message is the text that this resolves to, if any, or the message of the error with which it
   * rejects. Neither may hold secrets.
   */
  readonly ended: Promise<string | void>
}

/** Runs a function. Each function has one. */
export interface RunExecutor {
  /** Must not throw: failures reject `ended`. */
  start(start: RunStart): RunHandle
}
