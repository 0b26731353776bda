import { fstatSync } from 'node:fs'
import { constants } from 'node:os'
import { type AutomationFunction, RunCanceled, RunInterrupted } from '../../author/function.ts'
import { environmentSecrets } from '../run/environment-secrets.ts'
import { type RunOutcome, type StartedRun, startRun } from '../run/run-function.ts'
import type { LogLevel, RunFile } from '../../author/run-data.ts'
import type { RunBackend } from '../run-backend.ts'

/**
 * Set by a server that sees to this process: its output becomes lines of the run's log, where those that the function itself wrote are already, and its
 * standard input ends when the server does.
 */
const CAPTURED = 'STOWAGE_RUN_CAPTURED'

/** What a run is about, and where it reports. */
export interface ProcessRun {
  readonly runFile: RunFile
  readonly backend: RunBackend
  /** Texts that are kept out of what the run says, beside the token in the run file. */
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
 * Runs a function in this process, which is there for nothing else: whatever is thrown in it ends the run, and so do the signals to stop. Throws what
 * `read` throws, before anything has begun.
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
    // A server gives a process little of an environment, and what its operator adds to that is not for those who read what a run says.
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

/** What happens to the process, told to its one run. */
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

  /** A function whose server has died works for nobody: its run is lost, and a later server will say so. */
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

  /** Whoever presses Ctrl+C twice does not want to wait. */
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
