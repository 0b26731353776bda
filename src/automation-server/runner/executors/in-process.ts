import { type AutomationFunction, RunCanceled, RunInterrupted } from '../../../automation/author/function.ts'
import { startRun } from '../../../automation/runtime/run/run-function.ts'
import type { RunExecutor, RunHandle, RunStart, StopReason } from '../../domain/executor.ts'
import type { FailureGuard } from './failure-guard.ts'

/** The storage is near: what it does not take within this time, it does not take. */
const DELIVER_MS = 10_000

/**
 * Runs a function in this process, with the rights of the process: for code that the host trusts as its own. A function that does not heed its signal is left
 * behind after its grace period, and nothing of it is taken any more; one that never yields holds up the whole process.
 */
export class InProcessExecutor implements RunExecutor {
  readonly #function: AutomationFunction
  readonly #guard: FailureGuard

  constructor(automationFunction: AutomationFunction, guard: FailureGuard) {
    this.#function = automationFunction
    this.#guard = guard
  }

  start({ backend, runFile, secretTexts }: RunStart): RunHandle {
    this.#guard.watch()
    const run = startRun(this.#function, {
      backend,
      runData: runFile.automationRunData,
      inputs: runFile.functionInputs,
      secrets: secretTexts,
      deliveryTimeoutMs: DELIVER_MS,
    })
    return {
      cancel: (reason, graceMs) => run.stop(reasonOf(reason), graceMs),
      ended: run.outcome.then(({ message }) => message),
    }
  }
}

function reasonOf(reason: StopReason): Error {
  if (reason === 'closing') return new RunInterrupted('the service is closing')
  if (reason === 'canceled') return new RunCanceled('the run was canceled')
  if (reason === 'ended') return new RunCanceled('the run has ended')
  return new RunCanceled(reason === 'timeout' ? 'the run took too long' : 'the run no longer belongs to this server')
}
