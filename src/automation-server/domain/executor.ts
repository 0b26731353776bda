import type { LogLine, RunFile } from '../../automation/author/run-data.ts'
import type { RunBackend } from '../../automation/runtime/run-backend.ts'
import type { Run } from '../schemas/types.ts'

/** A run that is to start. It holds secrets and a token: nothing of it may be logged. */
export interface RunStart {
  /** The project of the run. */
  readonly projectId: string
  /** The run, as it was claimed. */
  readonly run: Run
  /** What a function's file is started with: the token, the inputs with their secrets, what the run is about. */
  readonly runFile: RunFile
  /** Where a function in this process reports. */
  readonly backend: RunBackend
  /** Adds what the function does not report itself, such as the output of its process, without secrets. Lines beyond the limit of a run are left out. */
  readonly addLogs: (lines: readonly LogLine[]) => Promise<void>
  /** Texts that must not stand in logs and messages: the secrets among the inputs, and the token. */
  readonly secretTexts: readonly string[]
  /** When the run must have ended, as the service's clock has it. `cancel` is called then. */
  readonly deadlineMs: number
}

/** Why a run is to stop: somebody canceled it, it took too long, it or its project belongs to nobody here any more, it has its final status and goes on, or the service closes. */
export type StopReason = 'canceled' | 'timeout' | 'lost' | 'ended' | 'closing'

/** A run that goes on. */
export interface RunHandle {
  /**
   * Asks the function to stop, and makes it stop after a while, or after `graceMs` where that is given. Calling it again is fine. Must not throw.
   */
  cancel(reason: StopReason, graceMs?: number): void
  /**
   * Resolves once nothing of the run goes on any more, whatever it reported. A run that has reported no final status by then becomes an exception, with the
   * text that this resolves to, if any, as its message; so it does when this rejects, with the message of the error. Neither may hold secrets.
   */
  readonly ended: Promise<string | void>
}

/** How a function is run. One belongs to each function. */
export interface RunExecutor {
  /** Must not throw: what goes wrong rejects `ended`. */
  start(start: RunStart): RunHandle
}
