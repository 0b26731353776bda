import { type Command, InvalidArgumentError, Option } from 'commander'
import { DEFAULT_RUN_TIMES, type RunTimes, TIMER_MS_MAX } from '../../automation-server/domain/options.ts'
import type { CommonServiceOptions } from '../../service/options.ts'
import { durationSeconds, durationSecondsOrNone } from '../common/options.ts'

/** The options of `stowage serve` about what is kept, and for how long. All times are in milliseconds. */
export interface UpkeepServeOptions {
  readonly keepRuns?: number
  readonly keepAnnotations?: number
  readonly keepLogs?: number
  readonly keepArtifacts?: number
  readonly deletionGrace?: number
  readonly collectEvery?: number
  readonly collectOlderThan?: number
  readonly collectUndoWithin?: number
  /** 0 for never. */
  readonly compactEvery?: number
  readonly compactShare?: number
}

const COMPACT_EVERY_MS = 3_600_000

export function addUpkeep(command: Command): void {
  addKept(command)
  command
    .addOption(
      new Option(
        '--collect-every <duration>',
        'how often to collect all projects: 12h, 7d (default: never; see "stowage collect --help")',
      ).argParser(interval),
    )
    .addOption(
      new Option(
        '--collect-older-than <duration>',
        'collections keep younger objects, unless a request says otherwise: 12h, 30d (default: 14d)',
      ).argParser(millisecondsOrNone),
    )
    .addOption(
      new Option(
        '--collect-undo-within <duration>',
        'how long collected objects can be restored, unless a request says otherwise: 12h, 30d (default: 14d)',
      ).argParser(millisecondsOrNone),
    )
    .addOption(
      new Option(
        '--compact-every <duration>',
        'look for packs to merge in all projects: 15m, 12h; 0 for never (default: 1h)',
      ).argParser(intervalOrNone),
    )
    .addOption(
      new Option(
        '--compact-share <share>',
        'the share of one processor that merging may take, up to 1 (default: 0.1)',
      ).argParser(share),
    )
}

function addKept(command: Command): void {
  command
    .addOption(
      new Option(
        '--keep-runs <duration>',
        'how long an ended run stays, with its annotations, log and files (default: 365d)',
      ).argParser(milliseconds),
    )
    .addOption(
      new Option(
        '--keep-annotations <duration>',
        'how long the annotations of an ended run stay (default: as long as the run)',
      ).argParser(milliseconds),
    )
    .addOption(
      new Option('--keep-logs <duration>', 'the same for its log (default: as long as the run)').argParser(
        milliseconds,
      ),
    )
    .addOption(
      new Option('--keep-artifacts <duration>', 'the same for its files (default: as long as the run)').argParser(
        milliseconds,
      ),
    )
    .addOption(
      new Option(
        '--deletion-grace <duration>',
        'how long a deleted model or version can be restored; only time in which a server runs counts (default: 14d)',
      ).argParser(milliseconds),
    )
}

/** The options for `automation`. */
export function keptTimesOf(
  options: UpkeepServeOptions,
): Pick<
  RunTimes,
  'runRetentionMs' | 'annotationRetentionMs' | 'logRetentionMs' | 'artifactRetentionMs' | 'deletionGraceMs'
> {
  const {
    keepRuns = DEFAULT_RUN_TIMES.runRetentionMs,
    keepAnnotations = keepRuns,
    keepLogs = keepRuns,
    keepArtifacts = keepRuns,
    deletionGrace = DEFAULT_RUN_TIMES.deletionGraceMs,
  } = options
  return {
    runRetentionMs: keepRuns,
    annotationRetentionMs: keepAnnotations,
    logRetentionMs: keepLogs,
    artifactRetentionMs: keepArtifacts,
    deletionGraceMs: deletionGrace,
  }
}

/** The options for the service: a server compacts by default, and collects only if it is told to. */
export function upkeepSettingsOf(
  options: UpkeepServeOptions,
): Pick<CommonServiceOptions<unknown>, 'collection' | 'compaction'> {
  const { collectEvery, collectOlderThan, collectUndoWithin, compactEvery = COMPACT_EVERY_MS, compactShare } = options
  return {
    collection: { everyMs: collectEvery, olderThanMs: collectOlderThan, undoMs: collectUndoWithin },
    compaction: compactEvery === 0 ? undefined : { everyMs: compactEvery, processorShare: compactShare },
  }
}

function milliseconds(text: string): number {
  return durationSeconds(text) * 1_000
}

function millisecondsOrNone(text: string): number {
  return durationSecondsOrNone(text) * 1_000
}

function interval(text: string): number {
  return checkedInterval(milliseconds(text))
}

function intervalOrNone(text: string): number {
  return checkedInterval(millisecondsOrNone(text))
}

function checkedInterval(ms: number): number {
  if (ms > TIMER_MS_MAX) throw new InvalidArgumentError('It must be 24 days at most.')
  return ms
}

function share(text: string): number {
  const value = /^(?:0?\.[0-9]{1,6}|0|1(?:\.0*)?)$/.test(text) ? Number(text) : Number.NaN
  if (!(value > 0)) throw new InvalidArgumentError('It must be a number above 0, up to 1, such as 0.25.')
  return value
}
