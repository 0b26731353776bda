import { type AutomationFunction, RunCanceled, RunInterrupted } from '../../../automation/author/function.ts'
import { startRun } from '../../../automation/runtime/run/run-function.ts'
import type { RunExecutor, RunHandle, RunStart, StopReason } from '../../domain/executor.ts'
import type { FailureGuard } from './failure-guard.ts'

/** The storage is local: if it does not accept a report within this time, it never will. */
const DELIVER_MS = 10_000

/**
 * Runs a function in this process, with the rights of the process: for code that the host trusts as its own. A function
 * that ignores its signal is abandoned after its grace period, and nothing more from it is accepted. A function that
 * never yields blocks the whole process.
 */
export class InProcessExecutor implements RunExecutor {
  readonly #function: AutomationFunction
  readonly #guard: FailureGuard

  constructor(automationFunction: AutomationFunction, guard: FailureGuard) {
    this.#function = automationFunction
    this.#guard = guard
  }

  start({ backend, runFile, secretTexts, environment }: RunStart): RunHandle {
    this.#guard.watch()
    const run = startRun(this.#function, {
      backend,
      runData: runFile.automationRunData,
      inputs: runFile.functionInputs,
      secrets: secretTexts,
      deliveryTimeoutMs: DELIVER_MS,
      environment,
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
