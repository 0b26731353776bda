import { Command, Option } from 'commander'
import type {
  RemoteChosenReport,
  RemoteCollectedAmount,
  RemoteCollectionProgress,
  RemoteCollectionReport,
  RemoteObjectAmount,
} from '../../client/index.ts'
import { addConnectOptions, CONNECT_HELP, type ConnectOptions, type Connected, withProject } from '../client/connect.ts'
import { withProjects } from '../client/each-project.ts'
import type { Progress } from '../client/progress.ts'
import { COLLECT_EXIT_HELP, EXIT, FindingsError } from '../common/exit.ts'
import { formatBytes, formatCount, formatDuration, printable } from '../common/format.ts'
import { durationSecondsOrNone, jsonOption } from '../common/options.ts'
import { printJson, printLine } from '../common/output.ts'

const EXAMPLES = `
Examples:
  stowage collect --dry-run --url http://127.0.0.1:8642 --project demo --token-file token.txt
  stowage collect --project demo                            condemns; a run after --undo-within frees
  stowage collect --project demo --undo                     restores everything that is condemned
  stowage collect --data /var/lib/stowage                   every project of a folder that no server has open
  stowage collect $ROOT --project demo                      a chosen graph that nothing leads to

Condemns the objects that no version, no pin and no object younger than --older-than leads to. Condemned objects can be
restored with --undo; a run after --undo-within frees them for good, and "stowage compact" gives their space back.
Without --project, all projects are collected that the token may write. A project with neither a version nor a pin is
never collected: "stowage ls --unreferenced" lists its objects, and chosen ones are collected by their ids.
Ages are counted in the time in which a server runs, in steps of ten minutes. Objects uploaded in the last 20
minutes may stay even with --older-than 0.
${CONNECT_HELP}
${COLLECT_EXIT_HELP}`

interface CollectOptions extends ConnectOptions {
  readonly dryRun?: boolean
  readonly olderThan?: number
  readonly undoWithin?: number
  readonly undo?: boolean
}

export function collectCommand(): Command {
  const command = new Command('collect')
    .summary('free objects that no version and no pin leads to')
    .description('Condemn objects that no version and no pin leads to, and free those condemned long ago.')
    .argument('[objects...]', 'the ids of chosen objects, with everything below them; without any, all')
  return addConnectOptions(command)
    .addOption(new Option('--dry-run', 'print what would happen, and change nothing'))
    .addOption(
      new Option(
        '--older-than <duration>',
        'keep younger objects: 12h, 30d (default: the period of the server, 14d unless set; for chosen objects 10m)',
      ).argParser(durationSecondsOrNone),
    )
    .addOption(
      new Option(
        '--undo-within <duration>',
        'how long condemned objects can be restored: 12h, 30d (default: the period of the server, 14d unless set)',
      ).argParser(durationSecondsOrNone),
    )
    .addOption(new Option('--undo', 'restore all condemned objects').conflicts(['dryRun', 'olderThan', 'undoWithin']))
    .addOption(jsonOption('print one JSON object a project'))
    .addHelpText('after', EXAMPLES)
    .action(collect)
}

async function collect(ids: readonly string[], options: CollectOptions, command: Command): Promise<void> {
  if (ids.length > 0 && options.project === undefined)
    return command.error('--project is missing: name the project of the objects, or set STOWAGE_PROJECT')
  if (ids.length > 0 && (options.undo === true || options.undoWithin !== undefined))
    return command.error('--undo and --undo-within are for whole projects; leave out the ids')
  if (ids.length > 0) return collectChosen(ids, options, command)
  let isDamaged = false
  await withProjects(options, command, (connected) =>
    withProgress(connected, options, async (settings) => {
      const { project } = connected
      if (options.undo === true)
        return printRestored(project.id, await project.upkeep.restoreCollected(settings), options)
      const report = await project.upkeep.collect({ ...settings, ...undoOf(options) })
      isDamaged ||= report.skipped === 'damaged'
      printCollected(project.id, report, options)
    }),
  )
  if (isDamaged) throw new FindingsError(EXIT.damage)
}

async function collectChosen(ids: readonly string[], options: CollectOptions, command: Command): Promise<void> {
  let missing = 0
  await withProject(options, command, (connected) =>
    withProgress(connected, options, async (settings) => {
      const report = await connected.project.upkeep.collectObjects(ids, settings)
      missing = report.missing
      printChosen(connected.project.id, report, options)
    }),
  )
  if (missing > 0) throw new FindingsError(EXIT.missing)
}

interface CollectSettings extends ReturnType<typeof requestOf> {
  readonly signal: AbortSignal
  readonly onProgress: (state: RemoteCollectionProgress) => void
}

async function withProgress(
  connected: Connected,
  options: CollectOptions,
  work: (settings: CollectSettings) => Promise<void>,
): Promise<void> {
  const progress = await connected.openProgress()
  try {
    await work({ signal: connected.signal, ...requestOf(options), onProgress: told(connected, progress) })
  } finally {
    progress.stop()
  }
}

function requestOf({ dryRun, olderThan }: CollectOptions): {
  readonly dryRun?: boolean
  readonly olderThanMs?: number
} {
  return { ...(dryRun && { dryRun }), ...(olderThan !== undefined && { olderThanMs: olderThan * 1_000 }) }
}

function undoOf({ undoWithin }: CollectOptions): { readonly undoMs?: number } {
  return undoWithin === undefined ? {} : { undoMs: undoWithin * 1_000 }
}

function told({ project }: Connected, progress: Progress): (state: RemoteCollectionProgress) => void {
  return ({ phase, objects, objectsTotal }) =>
    progress.update({
      done: objects,
      total: objectsTotal,
      // A rate in bytes would be wrong.
      skipped: objects,
      text: `${printable(project.id)}: ${phase} ${formatCount(objects, 'object')}`,
    })
}

function printCollected(projectId: string, report: RemoteCollectionReport, { json }: CollectOptions): void {
  if (json === true) return printJson({ project: projectId, ...report })
  const { skipped, dryRun, condemned, freed, replacedCopies, restorable, revived, young, olderThanMs } = report
  const tell = (text: string): void => printLine(`${printable(projectId)}: ${text}`)
  if (skipped === 'damaged') return tell('not collected: a pack of it cannot be read; "stowage check" says more')
  if (skipped === 'noRoots')
    tell('not collected: it has neither a version nor a pin; "stowage ls --unreferenced" lists its objects')
  else tell(`${dryRun ? 'would condemn' : 'condemned'} ${amountText(condemned)}${causesText(condemned)}`)
  // Chosen objects of a project without roots are freed as well.
  if (skipped === null || freed.objects > 0)
    tell(`${dryRun ? 'would free' : 'freed'} ${amountText(freed)}${causesText(freed)}`)
  if (replacedCopies.objects > 0)
    tell(
      `${dryRun ? 'would drop' : 'dropped'} ${amountText(replacedCopies, 'replaced copy', 'replaced copies')}: the objects were uploaded again and stay`,
    )
  if (revived.objects > 0) tell(`${amountText(revived)} restored: a version or a pin leads to them again`)
  if (restorable.objects > 0) tell(`${amountText(restorable)} condemned earlier can be restored with --undo`)
  if (skipped === null && young.objects > 0)
    tell(`${amountText(young)} kept: ${formatDuration(olderThanMs)} old or younger`)
}

function printChosen(projectId: string, report: RemoteChosenReport, { json, dryRun }: CollectOptions): void {
  if (json === true) return printJson({ project: projectId, ...report })
  const { condemned, kept, keptIds, missing, missingIds } = report
  printLine(`${printable(projectId)}: ${dryRun ? 'would condemn' : 'condemned'} ${amountText(condemned)}`)
  printIds(missing, missingIds, 'not held')
  printIds(
    kept,
    keptIds,
    'kept: in use by a version, a pin or another object, or too young (ages count in steps of ten minutes)',
  )
}

function printIds(count: number, ids: readonly string[], words: string): void {
  if (count === 0) return
  printLine(`${formatCount(count, 'object')} ${words}`)
  for (const id of ids) printLine(`  ${printable(id)}`)
  if (count > ids.length) printLine(`  and ${(count - ids.length).toLocaleString('en-US')} more`)
}

function printRestored(projectId: string, restored: RemoteObjectAmount, { json }: CollectOptions): void {
  if (json === true) return printJson({ project: projectId, restored })
  printLine(`${printable(projectId)}: restored ${amountText(restored)}`)
}

function amountText({ objects, jsonBytes, storedBytes }: RemoteObjectAmount, one = 'object', many?: string): string {
  return objects === 0
    ? 'nothing'
    : `${formatCount(objects, one, many)} (${formatBytes(jsonBytes)} of JSON, ${formatBytes(storedBytes)} stored)`
}

function causesText({ byCause: { neverReferenced, oldVersion } }: RemoteCollectedAmount): string {
  const causes = [
    ...(neverReferenced.objects > 0 ? [`${neverReferenced.objects.toLocaleString('en-US')} never referenced`] : []),
    ...(oldVersion.objects > 0 ? [`${oldVersion.objects.toLocaleString('en-US')} of deleted versions and pins`] : []),
  ]
  return causes.length === 0 ? '' : `: ${causes.join(', ')}`
}
