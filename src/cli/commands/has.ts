import { Command, Option } from 'commander'
import { addConnectOptions, CONNECT_HELP, type ConnectOptions, type Connected, withProject } from '../client/connect.ts'
import { openObjectFile } from '../client/object-file.ts'
import { formatCount } from '../common/format.ts'
import { EXIT, FindingsError, TRANSFER_EXIT_HELP } from '../common/exit.ts'
import { jsonOption } from '../common/options.ts'
import { printJson, printNote } from '../common/output.ts'
import { stdoutSink } from '../client/sink.ts'

const EXAMPLES = `
Examples:
  stowage has model.json --url http://127.0.0.1:8642 --project demo --token-file token.txt
  stowage has model.ndjson.gz --held                       the ids that the server holds instead
  stowage has model.json > missing.txt || echo "not all of it is there"
  stowage has model.json --json                            prints {"objects", "held", "missing"}

Prints the ids of the file's objects that the server does not hold, one a line, in the order of the file, and exits with
3 if there are any. Files have the formats of "stowage upload". The token needs the right to write.
${CONNECT_HELP}
${TRANSFER_EXIT_HELP}`

interface HasCommandOptions extends ConnectOptions {
  readonly held?: boolean
}

export function hasCommand(): Command {
  const command = new Command('has')
    .summary('list the objects of a file that a server lacks')
    .description('Print the ids of the objects of a file that a server lacks.')
    .argument('<file>', 'the file, or - for standard input')
  return addConnectOptions(command)
    .addOption(new Option('--held', 'print the ids that it holds'))
    .addOption(jsonOption('print only the numbers, {"objects", "held", "missing"}'))
    .addHelpText('after', EXAMPLES)
    .action(has)
}

async function has(path: string, options: HasCommandOptions, command: Command): Promise<void> {
  await withProject(options, command, async (connected) => {
    const counts = await compare(path, connected, options)
    if (options.json === true) printJson(counts)
    else
      printNote(
        `${formatCount(counts.objects, 'object')}: ${counts.held.toLocaleString('en-US')} held, ${counts.missing.toLocaleString('en-US')} missing`,
      )
    if (counts.missing > 0) throw new FindingsError(EXIT.missing)
  })
}

async function compare(
  path: string,
  { project, signal, openProgress }: Connected,
  { held: showsHeld = false, json = false }: HasCommandOptions,
): Promise<Counts> {
  const file = await openObjectFile(path, signal)
  const progress = await openProgress()
  const stdout = stdoutSink(signal)
  const counts = { objects: 0, held: 0, missing: 0 }
  try {
    for await (const batch of file.objects) {
      const ids = [...new Set(batch.map(({ id }) => id))]
      const { held, missing } = await project.has(ids, { signal })
      counts.objects += ids.length
      counts.held += held.size
      counts.missing += missing.length
      const text = `${formatCount(counts.objects, 'object')}, ${counts.missing.toLocaleString('en-US')} missing`
      progress.update({ done: file.bytesRead(), total: file.bytesTotal, text })
      const shown = showsHeld ? ids.filter((id) => held.has(id)) : missing
      if (!json && shown.length > 0) await stdout.write(`${shown.join('\n')}\n`)
    }
    return counts
  } finally {
    progress.stop()
  }
}

interface Counts {
  readonly objects: number
  readonly held: number
  readonly missing: number
}
