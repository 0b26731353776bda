import { join, resolve } from 'node:path'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { AutomationOptions } from '../../automation-server/automation.ts'
import type { CommandOptions } from '../../automation-server/runner/executors/command.ts'
import type {
  IsolationOptions,
  IsolationStatus,
} from '../../automation-server/runner/executors/isolation/command-runner.ts'
import {
  DEFAULT_AUTOMATION_LIMITS,
  DEFAULT_RUN_TIMES,
  resolveAutomationLimits,
  TIMER_MS_MAX,
} from '../../automation-server/domain/options.ts'
import { StowageError } from '../../errors.ts'
import { MB } from '../../limits.ts'
import { quoted } from '../../object/id.ts'
import { collected, durationSeconds, positiveInteger } from '../common/options.ts'

/** The options of `stowage serve` about automation functions. */
export interface FunctionServeOptions {
  /** Files of functions. */
  readonly function?: readonly string[]
  /** Files of functions that have the network. */
  readonly functionNetwork?: readonly string[]
  readonly functionIsolation?: Isolation
  /** Paths that functions may read, besides their own folders. */
  readonly functionFiles?: readonly string[]
  /** Names of variables. */
  readonly functionEnv?: readonly string[]
  readonly functionMemoryBytesMax?: number
  readonly functionConcurrency?: number
  /** In milliseconds, as the next one. */
  readonly functionTimeout?: number
  readonly pendingTimeout?: number
  readonly pendingRunsMax?: number
}

type Isolation = NonNullable<IsolationOptions['isolation']>

const ISOLATIONS: readonly Isolation[] = ['auto', 'required', 'off']
/** Node with the SDK takes most of that. */
const MEMORY_BYTES_MIN = 128 * MB
const VARIABLE = /^[A-Za-z_]\w*$/

export function addFunctions(command: Command): void {
  command
    .addOption(
      new Option(
        '--function <file>',
        'a file that ends with executeFunction: it can be run by automations; may be repeated',
      ).argParser(collected),
    )
    .addOption(
      new Option(
        '--function-network <file>',
        'the same, for a function that needs the network; isolated functions without it reach only this server',
      ).argParser(collected),
    )
    .addOption(
      new Option(
        '--function-isolation <mode>',
        'auto: bubblewrap if it works; required: do not start without it; off: plain processes (default: auto)',
      ).choices(ISOLATIONS),
    )
    .addOption(
      new Option(
        '--function-files <path>',
        'a file or folder that isolated functions may read, beside their own folders; may be repeated',
      ).argParser(collected),
    )
    .addOption(
      new Option(
        '--function-env <name>',
        'a variable of this environment that functions get, too; may be repeated',
      ).argParser(collected),
    )
    .addOption(
      new Option('--function-memory-bytes-max <n>', 'memory of the processes of a run (default: 1073741824)').argParser(
        memoryBytes,
      ),
    )
    .addOption(new Option('--function-concurrency <n>', 'runs at a time (default: 2)').argParser(positiveInteger))
    .addOption(
      new Option('--function-timeout <duration>', 'how long a run may take: 90s, 15m, 12h (default: 1h)').argParser(
        runTime,
      ),
    )
    .addOption(
      new Option('--pending-timeout <duration>', 'how long a run may queue (default: 1d)').argParser(milliseconds),
    )
    .addOption(
      new Option('--pending-runs-max <n>', 'runs of one automation that may wait')
        .argParser(pendingRuns)
        .default(DEFAULT_AUTOMATION_LIMITS.pendingRunsMax),
    )
}

/** The isolation that the options ask for; the data folder is hidden. */
export function isolationOf(
  { functionIsolation: isolation = 'auto' }: FunctionServeOptions,
  data: string,
): IsolationOptions {
  return { isolation, hiddenPaths: [data], processFolder: join(data, 'processes') }
}

/** The line about functions that a server prints at its start, if it has any. */
export function isolationLine({ kind, reason }: IsolationStatus): string {
  return kind === 'bubblewrap'
    ? 'functions run isolated by bubblewrap: their own processes, files and network'
    : `functions run as plain processes with the rights of this user: ${reason}`
}

/** The options for `automation`. */
export function automationOptionsOf(
  options: FunctionServeOptions,
): Pick<AutomationOptions, 'concurrency' | 'runMsMax' | 'pendingMsMax' | 'limits'> {
  const {
    functionConcurrency,
    functionTimeout = DEFAULT_RUN_TIMES.runMsMax,
    pendingTimeout = DEFAULT_RUN_TIMES.pendingMsMax,
    pendingRunsMax,
  } = options
  return {
    runMsMax: functionTimeout,
    pendingMsMax: pendingTimeout,
    ...(functionConcurrency === undefined ? {} : { concurrency: functionConcurrency }),
    ...(pendingRunsMax === undefined ? {} : { limits: { pendingRunsMax } }),
  }
}

/**
 * The options for the process of each function. Values of variables are in the environment alone, since others on the
 * machine can see command lines; a value that is given by mistake is not shown. Throws `invalid_request`.
 */
export function functionProcessOf({
  functionEnv = [],
  functionFiles = [],
  functionMemoryBytesMax: memoryBytesMax,
}: FunctionServeOptions): Pick<CommandOptions, 'env' | 'memoryBytesMax' | 'readablePaths'> {
  return {
    readablePaths: functionFiles.map((path) => resolve(path)),
    env: Object.fromEntries(functionEnv.map((name) => [name, variableOf(name)])),
    ...(memoryBytesMax === undefined ? {} : { memoryBytesMax }),
  }
}

function variableOf(name: string): string {
  if (name.includes('='))
    throw new StowageError(
      'invalid_request',
      `--function-env ${quoted(name.slice(0, name.indexOf('=')))}: it must be the name alone; the value is taken from the environment of this command`,
    )
  if (!VARIABLE.test(name))
    throw new StowageError(
      'invalid_request',
      `--function-env ${quoted(name)}: it must be the name of a variable: letters, digits and "_", the first no digit`,
    )
  const value = process.env[name]
  if (value === undefined)
    throw new StowageError(
      'invalid_request',
      `--function-env ${quoted(name)}: there is no such variable in the environment of this command; set it first`,
    )
  return value
}

function memoryBytes(text: string): number {
  const bytes = positiveInteger(text)
  if (bytes < MEMORY_BYTES_MIN)
    throw new InvalidArgumentError(
      `It must be ${MEMORY_BYTES_MIN} (128 MB) or more: node with the SDK takes most of that.`,
    )
  return bytes
}

function milliseconds(text: string): number {
  return durationSeconds(text) * 1_000
}

function runTime(text: string): number {
  const ms = milliseconds(text)
  if (ms > TIMER_MS_MAX) throw new InvalidArgumentError('It must be 24 days at most.')
  return ms
}

function pendingRuns(text: string): number {
  try {
    return resolveAutomationLimits({ pendingRunsMax: positiveInteger(text) }).pendingRunsMax
  } catch (error) {
    throw error instanceof RangeError ? new InvalidArgumentError(`${error.message}.`) : error
  }
}
