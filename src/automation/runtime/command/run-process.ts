import { fstatSync } from 'node:fs'
import { constants } from 'node:os'
import { type AutomationFunction, RunCanceled, RunInterrupted } from '../../author/function.ts'
import { environmentSecrets } from '../run/environment-secrets.ts'
import { type StartedRun, startRun } from '../run/run-function.ts'
import type { RunOutcome } from '../run/run-options.ts'
import type { LogLevel, RunFile } from '../../author/run-data.ts'
import type { RunBackend } from '../run-backend.ts'

/**
 * Set by a server that looks after this process. The output of the process becomes lines of the run's log, which
 * already has the function's own lines, and its standard input ends when the server does.
 */
const CAPTURED = 'STOWAGE_RUN_CAPTURED'

/** The data of a run, and the place it reports to. */
export interface ProcessRun {
  readonly runFile: RunFile
  readonly backend: RunBackend
  /** Texts that are kept out of the run's reports, besides the token in the run file. */
  readonly secrets?: readonly string[]
}

/** Times of a run in a process of its own, in milliseconds. */
export interface ProcessTimes {
  /** See `RunOptions`. */
  readonly leaseIntervalMs?: number
  /** How long the last report may take to reach the server, in milliseconds. */
  readonly deliveryTimeoutMs?: number
}

/**
 * Runs a function in this process, which serves no other purpose: anything thrown in it ends the run, and so do the
 * signals to stop. Throws what `read` throws, before anything has begun.
 */
export async function runInThisProcess(
  automationFunction: AutomationFunction,
  read: () => Promise<ProcessRun>,
  times: ProcessTimes,
): Promise<RunOutcome> {
  const watch = new ProcessWatch()
  const { runFile, backend, secrets = [] } = await read()
  const run = startRun(automationFunction, {
    ...times,
    backend,
    runData: runFile.automationRunData,
    inputs: runFile.functionInputs,
    // A server gives a process only a small environment. Values that its operator adds are not for readers of the run's
    // reports.
    secrets: [runFile.speckleToken, ...secrets, ...(isCaptured() ? environmentSecrets(process.env) : [])],
    signal: watch.signal,
    ...(isCaptured()
      ? {}
      : { onLine: (level: LogLevel, line: string) => void process.stderr.write(`${level}: ${line}\n`) }),
  })
  watch.follow(run)
  if (isCaptured()) watch.followServer()
  const outcome = await run.outcome
  watch.end()
  return outcome
}

export function isCaptured(): boolean {
  return process.env[CAPTURED] !== undefined
}

/** Reports what happens to the process to its one run. */
class ProcessWatch {
  readonly #stop = new AbortController()
  #run: StartedRun | undefined
  #early: { readonly error: unknown } | undefined
  #isOver = false

  constructor() {
    /* Whoever read what is written may be gone. */
    for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)
    for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, () => this.#onSignal(name))
    for (const event of ['uncaughtException', 'unhandledRejection'] as const)
      process.on(event, (error: unknown) => this.#fail(error))
    process.on('beforeExit', () => this.#onIdle())
  }

  get signal(): AbortSignal {
    return this.#stop.signal
  }

  follow(run: StartedRun): void {
    this.#run = run
    if (this.#early !== undefined) run.fail(this.#early.error)
  }

  /** The result of a function whose server has died reaches nobody: its run is lost, and a later server will say so. */
  followServer(): void {
    const input = fstatSync(0)
    if (!input.isFIFO() && !input.isSocket()) return
    const onEnd = (): void => this.#stop.abort(new RunCanceled('its server is gone'))
    for (const event of ['end', 'error'] as const) process.stdin.once(event, onEnd)
    process.stdin.resume().unref()
  }

  end(): void {
    this.#isOver = true
  }

  /** A person who presses Ctrl+C twice does not want to wait. */
  #onSignal(name: 'SIGTERM' | 'SIGINT'): void {
    if (name === 'SIGINT' && this.signal.aborted) process.exit(128 + constants.signals.SIGINT)
    this.#stop.abort(new RunInterrupted(`the process got ${name}`))
  }

  #fail(error: unknown): void {
    this.#early ??= { error }
    this.#run?.fail(error)
  }

  /** Nothing is left that could go on: there is nothing to wait for. */
  #onIdle(): void {
    if (!this.#isOver) this.#run?.fail(new Error('the function waits forever: its process has nothing left to do'), 0)
  }
}
