import { rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { environmentSecrets } from '../../../automation/runtime/run/environment-secrets.ts'
import type { RunFile } from '../../../automation/author/run-data.ts'
import type { Clock } from '../../../environment.ts'
import type { RunExecutor, RunHandle, RunStart, StopReason } from '../../domain/executor.ts'
import { positive, TIMER_MS_MAX } from '../../domain/options.ts'
import type { CommandRunner } from './isolation/command-runner.ts'
import type { ProcessExit, ProcessGroup } from './isolation/process-group.ts'
import { OutputLog } from './output-log.ts'
import { removeStaleFolders, withPrivateFolder } from './private-folder.ts'

/** Options of a function that runs in a process of its own. */
export interface CommandOptions {
  /**
   * The program and its parameters, such as `['node', 'checker.js']`, to which `run FILE` is appended. There is no
   * shell.
   */
  readonly command: readonly string[]
  /** The working folder of the program. The folder of this process by default. */
  readonly cwd?: string
  /**
   * Variables of its environment, beside the few that every function gets (such as `PATH`). Values whose names say that
   * they are secrets are kept out of the log.
   */
  readonly env?: Readonly<Record<string, string>>
  /** How long it may continue after SIGTERM, before SIGKILL. 10,000 by default. */
  readonly killAfterMs?: number
  /**
   * The resident memory of the process and all processes below it, if the system reports it (Linux), and three quarters
   * of it for the heap of each node. 1 GB by default.
   */
  readonly memoryBytesMax?: number
  /** Bytes of its output that become lines of the run's log. 1 MB by default. */
  readonly outputBytesMax?: number
  /** In isolation: whether it has the network of the machine, rather than the server alone. `false` by default. */
  readonly hasNetwork?: boolean
  /** In isolation: the paths that it may read besides `cwd`, the files that the command names, and packages. */
  readonly readablePaths?: readonly string[]
}

const RUN_FILE = 'run.json'
const KILL_AFTER_MS = 10_000
const MEMORY_BYTES_MAX = 1_073_741_824
const OUTPUT_BYTES_MAX = 1_048_576
const MEMORY_INTERVAL_MS = 250
/** How often leftovers of killed servers are looked for. Newer leftovers are left alone for as long. */
const TIDY_INTERVAL_MS = 60_000

export type ResolvedCommand = Required<CommandOptions>

/** Throws `TypeError` and `RangeError` for options that cannot be. */
export function resolveCommand({ command, cwd = process.cwd(), env = {}, ...limits }: CommandOptions): ResolvedCommand {
  if (
    command.length === 0 ||
    command.some((part) => typeof part !== 'string' || part.includes('\0')) ||
    command[0] === ''
  )
    throw new TypeError('a command must be a list of texts: the program, then its parameters')
  const { killAfterMs = KILL_AFTER_MS, memoryBytesMax = MEMORY_BYTES_MAX, outputBytesMax = OUTPUT_BYTES_MAX } = limits
  const { hasNetwork = false, readablePaths = [] } = limits
  return {
    command,
    cwd: resolve(cwd),
    env,
    hasNetwork,
    readablePaths,
    killAfterMs: positive('killAfterMs', killAfterMs, TIMER_MS_MAX),
    memoryBytesMax: positive('memoryBytesMax', memoryBytesMax),
    outputBytesMax: positive('outputBytesMax', outputBytesMax),
  }
}

/** Runs a function as a command: a process, or several, for each run, bounded in time, memory and output. */
export class CommandExecutor implements RunExecutor {
  readonly #options: ResolvedCommand
  readonly #runner: CommandRunner
  readonly #clock: Clock
  #tidied: Promise<void> = Promise.resolve()
  #tidiedAtMs = Number.NEGATIVE_INFINITY

  constructor(options: ResolvedCommand, runner: CommandRunner, clock: Clock = Date) {
    this.#options = options
    this.#runner = runner
    this.#clock = clock
  }

  start(start: RunStart): RunHandle {
    const run = new CommandRun(this.#options, this.#runner, start, this.#clock)
    if (performance.now() - this.#tidiedAtMs > TIDY_INTERVAL_MS) {
      this.#tidiedAtMs = performance.now()
      this.#tidied = removeStaleFolders()
    }
    return { cancel: (reason, graceMs) => run.cancel(reason, graceMs), ended: this.#tidied.then(() => run.run()) }
  }
}

class CommandRun {
  readonly #options: ResolvedCommand
  readonly #runner: CommandRunner
  readonly #start: RunStart
  readonly #output: OutputLog
  #group: ProcessGroup | undefined
  #stopped: StopReason | undefined
  #killAtMs = Infinity
  #memoryBytes: number | undefined
  #killTimer: NodeJS.Timeout | undefined
  #isWatching = false

  constructor(options: ResolvedCommand, runner: CommandRunner, start: RunStart, clock: Clock) {
    const { addLogs } = start
    const secretTexts = [...start.secretTexts, ...environmentSecrets(options.env)]
    this.#options = options
    this.#runner = runner
    this.#start = start
    this.#output = new OutputLog({ outputBytesMax: options.outputBytesMax, secretTexts, addLogs, clock })
  }

  cancel(reason: StopReason, graceMs: number = this.#options.killAfterMs): void {
    const isFirst = this.#stopped === undefined
    const killAtMs = performance.now() + Math.min(graceMs, this.#options.killAfterMs)
    this.#stopped ??= reason
    if (this.#group === undefined || killAtMs >= this.#killAtMs) return
    this.#killAtMs = killAtMs
    if (isFirst) this.#group.signal('SIGTERM')
    clearTimeout(this.#killTimer)
    this.#killTimer = setTimeout(() => this.#group?.signal('SIGKILL'), killAtMs - performance.now())
  }

  async run(): Promise<string> {
    return withPrivateFolder(async (folder) => {
      const path = join(folder, RUN_FILE)
      try {
        const group = await this.#runner.start({
          ...this.#options,
          folder,
          serverUrl: this.#start.runFile.automationRunData.speckleServerUrl,
          prepare: async (inside) => {
            await writeFile(path, JSON.stringify(this.#runFile(inside.serverUrl)), { mode: 0o600, flag: 'wx' })
            return ['run', join(inside.folder, RUN_FILE)]
          },
        })
        this.#follow(group)
        return this.#wordsOn(await this.#untilEnd(group))
      } finally {
        // By itself, since it holds secrets: the rest of the folder may be such that it cannot be removed.
        await rm(path, { force: true }).catch(() => undefined)
      }
    })
  }

  /** It may have been stopped while its process began. */
  #follow(group: ProcessGroup): void {
    this.#group = group
    if (this.#stopped !== undefined) group.signal('SIGKILL')
  }

  #runFile(speckleServerUrl: string): RunFile {
    const { runFile } = this.#start
    return { ...runFile, automationRunData: { ...runFile.automationRunData, speckleServerUrl } }
  }

  async #untilEnd(group: ProcessGroup): Promise<ProcessExit> {
    const output = Promise.all([this.#output.read(group.stdout, 'info'), this.#output.read(group.stderr, 'warn')])
    const memory = setInterval(() => void this.#watchMemory(group), MEMORY_INTERVAL_MS)
    try {
      return await group.exited
    } finally {
      clearInterval(memory)
      clearTimeout(this.#killTimer)
      await group.cleanUp(output)
      await this.#output.finish()
    }
  }

  async #watchMemory(group: ProcessGroup): Promise<void> {
    if (this.#isWatching) return
    this.#isWatching = true
    const bytes = await group.residentBytes()
    this.#isWatching = false
    if (bytes <= this.#options.memoryBytesMax) return
    this.#memoryBytes ??= bytes
    group.signal('SIGKILL')
  }

  /** The message for a run that has not reported how it ended. */
  #wordsOn({ code, signal }: ProcessExit): string {
    const how = code === null ? `was ended by ${signal}` : `ended with exit code ${code}`
    const why =
      this.#memoryBytes === undefined
        ? ''
        : `, since it took ${this.#memoryBytes} bytes of memory and the limit is ${this.#options.memoryBytesMax}`
    const { lastLines } = this.#output
    return `the function's process ${how}${why}, and had reported no status${lastLines === '' ? '' : `; the end of its output:\n${lastLines}`}`
  }
}
