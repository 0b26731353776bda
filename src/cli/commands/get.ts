import { createInterface } from 'node:readline'
import { Command, Option } from 'commander'
import type { ObjectText, Project } from '../../client/index.ts'
import { addConnectOptions, CONNECT_HELP, type ConnectOptions, withProject } from '../client/connect.ts'
import { type Format, formatOption, FormatWriter } from '../client/formats.ts'
import { fileSink, STDOUT, stdoutSink } from '../client/sink.ts'
import { formatCount } from '../common/format.ts'
import { EXIT, FindingsError, TRANSFER_EXIT_HELP } from '../common/exit.ts'
import { jsonOption } from '../common/options.ts'
import { printNote } from '../common/output.ts'

const MISSING_SHOWN_MAX = 5
const BYTE_ORDER_MARK = /^\ufeff/

const EXAMPLES = `
Examples:
  stowage get $ID --url http://127.0.0.1:8642 --project demo --token-file token.txt
  stowage get $ID | jq .speckle_type                        one object a line
  stowage get $A $B $C --json                               a JSON array
  cat ids.txt | stowage get - -o objects.txt --format lines any number of ids, one a line
  stowage get $ID --single                                  by its own address, which proxies can cache

Prints the objects without the objects below them, in any order, each once. Exits with 3 if one is not held.
${CONNECT_HELP}
${TRANSFER_EXIT_HELP}`

interface GetCommandOptions extends ConnectOptions {
  readonly output?: string
  readonly format: Format
  readonly single?: boolean
}

export function getCommand(): Command {
  const command = new Command('get')
    .summary('fetch single objects')
    .description('Fetch objects by their ids, without the objects below them.')
    .argument('<id...>', 'ids, or - for those on standard input, one a line')
  return addConnectOptions(command)
    .addOption(new Option('-o, --output <file>', 'the file to write; - is standard output'))
    .addOption(formatOption('ndjson'))
    .addOption(new Option('--single', 'send one request for each, in the given order'))
    .addOption(jsonOption('the same as --format json'))
    .addHelpText('after', EXAMPLES)
    .action(get)
}

async function get(ids: readonly string[], options: GetCommandOptions, command: Command): Promise<void> {
  const { output, single = false, json, format } = options
  const missing: string[] = []
  let missingCount = 0
  const onMissing = (some: readonly string[]): void => {
    missingCount += some.length
    missing.push(...some.slice(0, MISSING_SHOWN_MAX - missing.length))
  }
  await withProject(options, command, async ({ project, signal }) => {
    const asked = ids.length === 1 && ids[0] === '-' ? linesOfStdin(signal) : ids
    const batches = single
      ? oneByOne(project, asked, signal, onMissing)
      : project.listTexts(asked, { signal, onMissing })
    const sink = output === undefined || output === STDOUT ? stdoutSink(signal) : await fileSink(output)
    try {
      const writer = new FormatWriter(json === true ? 'json' : format)
      for await (const batch of batches) await sink.write(writer.batch(batch))
      await sink.write(writer.end())
      await sink.finish()
    } finally {
      await sink.close()
    }
  })
  if (missingCount === 0) return
  printNote(
    `${formatCount(missingCount, 'object')} not held: ${missing.map((id) => JSON.stringify(id)).join(', ')}${missingCount > missing.length ? ', …' : ''}`,
  )
  throw new FindingsError(EXIT.missing)
}

async function* oneByOne(
  project: Project,
  ids: Iterable<string> | AsyncIterable<string>,
  signal: AbortSignal,
  onMissing: (ids: readonly string[]) => void,
): AsyncGenerator<readonly ObjectText[]> {
  for await (const id of ids) {
    const object = await project.getText(id, { signal })
    if (object === undefined) onMissing([id])
    else yield [object]
  }
}

async function* linesOfStdin(signal: AbortSignal): AsyncGenerator<string> {
  let isFirst = true
  for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity, signal })) {
    const id = isFirst ? line.replace(BYTE_ORDER_MARK, '') : line
    isFirst = false
    if (id !== '') yield id
  }
  signal.throwIfAborted()
}
