import { Command, Option } from 'commander'
import type { RemoteCompactionReport } from '../../client/index.ts'
import { addConnectOptions, CONNECT_HELP, type ConnectOptions } from '../client/connect.ts'
import { withProjects } from '../client/each-project.ts'
import { EXIT, FindingsError, UPKEEP_EXIT_HELP } from '../common/exit.ts'
import { formatBytes, formatCount, printable } from '../common/format.ts'
import { jsonOption } from '../common/options.ts'
import { printJson, printLine } from '../common/output.ts'

const EXAMPLES = `
Examples:
  stowage compact --url http://127.0.0.1:8642 --project demo --token-file token.txt
  stowage compact --project demo --all                      merges everything that can be merged
  stowage compact --data /var/lib/stowage                   every project of a folder that no server has open

Merges small packs, and packs with many freed objects. Uploads and downloads continue. Replaced packs are
removed a day later, when no download can read them any more. A server compacts by itself: "stowage serve --help".
Without --project, all projects are compacted that the token may write.
${CONNECT_HELP}
${UPKEEP_EXIT_HELP}`

interface CompactOptions extends ConnectOptions {
  readonly all?: boolean
}

export function compactCommand(): Command {
  const command = new Command('compact')
    .summary('merge packs, and give the space of collected objects back')
    .description('Merge small packs, and packs with many freed objects.')
  return addConnectOptions(command)
    .addOption(new Option('--all', 'merge all packs that can be merged'))
    .addOption(jsonOption('print one JSON object a project'))
    .addHelpText('after', EXAMPLES)
    .action(compact)
}

async function compact(options: CompactOptions, command: Command): Promise<void> {
  let damagedPacks = 0
  await withProjects(options, command, async ({ project, signal, openProgress }) => {
    const progress = await openProgress()
    try {
      const report = await project.upkeep.compact({
        ...(options.all === true && { all: true }),
        signal,
        onProgress: ({ merges, storedBytes, storedBytesTotal }) =>
          progress.update({
            done: storedBytes,
            total: storedBytesTotal,
            text: `${printable(project.id)}: ${formatCount(merges, 'merge')}`,
          }),
      })
      damagedPacks += report.damagedPacks
      print(project.id, report, options)
    } finally {
      progress.stop()
    }
  })
  if (damagedPacks > 0) throw new FindingsError(EXIT.damage)
}

function print(projectId: string, report: RemoteCompactionReport, { json, data }: CompactOptions): void {
  if (json === true) return printJson({ project: projectId, ...report })
  const { merges, packsBefore, packsAfter, storedBytesBefore, storedBytesAfter, retiredBytes, stopped } = report
  const { damagedPacks, damaged } = report
  const tell = (text: string): void => printLine(`${printable(projectId)}: ${text}`)
  if (merges === 0) tell(`nothing to merge: ${formatCount(packsAfter, 'pack')}, ${formatBytes(storedBytesAfter)}`)
  else
    tell(
      `${formatCount(packsBefore, 'pack')} became ${packsAfter.toLocaleString('en-US')}, ${formatBytes(storedBytesBefore)} became ${formatBytes(storedBytesAfter)}`,
    )
  if (retiredBytes > 0) tell(`${formatBytes(retiredBytes)} of replaced packs leave the disk within a day`)
  if (stopped === 'storageFull') tell('stopped: the storage is full')
  for (const { packId, message } of damaged)
    tell(`pack ${packId} is damaged, so it was not merged: ${printable(message)}`)
  if (damagedPacks > damaged.length) tell(formatCount(damagedPacks - damaged.length, 'more damaged pack'))
  const next = data === undefined ? 'stop the server and run "stowage check"' : `run "stowage check --data ${data}"`
  if (damagedPacks > 0) tell(`to see what is affected, ${next}`)
}
