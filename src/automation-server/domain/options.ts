import { MB } from '../../limits.ts'

import { TIMER_MS_MAX } from '../../automation/runtime/run/timer.ts'

export { TIMER_MS_MAX } from '../../automation/runtime/run/timer.ts'

/** Limits of what automation stores and accepts. Each is the largest value that is still accepted. */
export interface AutomationLimits {
  /** Bytes of a JSON body, apart from reports. */
  readonly bodyBytesMax: number
  /** Bytes of one report. */
  readonly reportBytesMax: number
  /** Objects that all annotations of one run name together, each annotation counted for itself. */
  readonly annotationObjectsMax: number
  /** Bytes of all annotations of one run. */
  readonly annotationBytesMax: number
  /** Bytes of all log lines of one run. Later lines are omitted, and the run says so. */
  readonly logBytesMax: number
  /** Bytes of one artifact. */
  readonly artifactBytesMax: number
  /** Artifacts of one run. */
  readonly artifactsMax: number
  /** Versions that one run creates. */
  readonly createdVersionsMax: number
  /** Automations of one project. */
  readonly automationsMax: number
  /**
   * Runs of one automation that may queue. Beyond that none can be started by hand, and the oldest one is canceled for
   * a new version's run.
   */
  readonly pendingRunsMax: number
  /** Automations that may start each other in a row. */
  readonly chainMax: number
  /** Runs that one version, or one run that a person started, leads to, over all automations and projects. */
  readonly runsPerCauseMax: number
  /** Streams of events at a time, of everybody. */
  readonly eventStreamsMax: number
  /** Concurrent event streams of one principal: of its subject, or of its token if it has none. */
  readonly eventStreamsPerPrincipalMax: number
}

/** The default limits. */
export const DEFAULT_AUTOMATION_LIMITS: AutomationLimits = {
  bodyBytesMax: 262_144,
  reportBytesMax: 8 * MB,
  annotationObjectsMax: 100_000,
  annotationBytesMax: 64 * MB,
  logBytesMax: MB,
  artifactBytesMax: 256 * MB,
  artifactsMax: 50,
  createdVersionsMax: 100,
  automationsMax: 1_000,
  pendingRunsMax: 100,
  chainMax: 8,
  runsPerCauseMax: 50,
  eventStreamsMax: 200,
  eventStreamsPerPrincipalMax: 50,
}

/** The capacity of a run's record, and the longest chain of automations, regardless of what a host asks for. */
const CEILINGS: Partial<Record<keyof AutomationLimits, number>> = {
  artifactsMax: 64,
  createdVersionsMax: 128,
  automationsMax: 10_000,
  pendingRunsMax: 10_000,
  chainMax: 32,
  runsPerCauseMax: 10_000,
}

/**
 * The defaults with a host's choices on top. Throws `RangeError` for a value that is not a positive integer, and for a
 * limit that is not one.
 */
export function resolveAutomationLimits(chosen: Partial<AutomationLimits> = {}): AutomationLimits {
  const limits: { -readonly [K in keyof AutomationLimits]: number } = { ...DEFAULT_AUTOMATION_LIMITS }
  for (const [name, value] of Object.entries(chosen) as [keyof AutomationLimits, number | undefined][]) {
    if (value === undefined) continue
    if (!(name in limits))
      throw new RangeError(`limits.${name} is not a limit; known are ${Object.keys(limits).join(', ')}`)
    limits[name] = positive(`limits.${name}`, value, CEILINGS[name])
  }
  return limits
}

/** Throws `RangeError` unless the value is an integer from 1 to `max`. */
export function positive(name: string, value: number, max: number = Number.MAX_SAFE_INTEGER): number {
  if (Number.isSafeInteger(value) && value >= 1 && value <= max) return value
  throw new RangeError(`${name} is ${value}; it must be an integer from 1 to ${max}`)
}

/** Times, in milliseconds; all but `pendingMsMax`, `deletionGraceMs` and those that tell what is kept are 24 days at most. */
export interface RunTimes {
  /** How long a run may be silent. Its runner renews its lease, or the run times out. */
  readonly leaseMs: number
  /** How long a run may queue before it starts; then it times out. */
  readonly pendingMsMax: number
  /** How long a run may take from its start. */
  readonly runMsMax: number
  /** How often lost runs are looked for. */
  readonly sweepIntervalMs: number
  /** How long a run is kept after its end, with its annotations, logs and artifacts. */
  readonly runRetentionMs: number
  /** How long the annotations of a run are kept after its end; as long as the run at most. */
  readonly annotationRetentionMs: number
  /** How long the log of a run is kept after its end; as long as the run at most. */
  readonly logRetentionMs: number
  /** How long the files of a run are kept after its end; as long as the run at most. */
  readonly artifactRetentionMs: number
  /**
   * How long a deleted model or version can be restored. Counted in the store's epochs, so time in which no server runs
   * does not count.
   */
  readonly deletionGraceMs: number
}

/**
 * The default times: a lease of a minute, a day for a run to start and an hour to end, a look for lost ones every ten
 * seconds, runs kept for a year with everything of theirs, deleted models and versions for 14 days.
 */
export const DEFAULT_RUN_TIMES: RunTimes = {
  leaseMs: 60_000,
  pendingMsMax: 86_400_000,
  runMsMax: 3_600_000,
  sweepIntervalMs: 10_000,
  runRetentionMs: 365 * 86_400_000,
  annotationRetentionMs: 365 * 86_400_000,
  logRetentionMs: 365 * 86_400_000,
  artifactRetentionMs: 365 * 86_400_000,
  deletionGraceMs: 14 * 86_400_000,
}

/** Throws `RangeError` for times that cannot be. */
export function checkedTimes(times: RunTimes): RunTimes {
  const short = ['leaseMs', 'runMsMax', 'sweepIntervalMs'] as const
  const long = [
    'pendingMsMax',
    'runRetentionMs',
    'annotationRetentionMs',
    'logRetentionMs',
    'artifactRetentionMs',
    'deletionGraceMs',
  ] as const
  const checked = [
    ...short.map((name) => [name, positive(name, times[name], TIMER_MS_MAX)] as const),
    ...long.map((name) => [name, positive(name, times[name])] as const),
  ]
  return Object.fromEntries(checked) as unknown as RunTimes
}
