import { Command, Option } from 'commander'
import {
  ClientError,
  type ClientOptions,
  type GraphInfo,
  type GraphOptions,
  type GraphProgress,
} from '../../client/index.ts'
import { addConnectOptions, CONNECT_HELP, type ConnectOptions, type Connected, withProject } from '../client/connect.ts'
import { BaseFile } from '../client/base-file.ts'
import { type Format, formatOption, FormatWriter } from '../client/formats.ts'
import { PartialFile } from '../client/partial-file.ts'
import { fileSink, type Sink, STDOUT, stdoutSink } from '../client/sink.ts'
import { parseHaveRoot } from '../../object/have-root.ts'
import { formatBytes, formatCount } from '../common/format.ts'
import { EXIT, FindingsError, TRANSFER_EXIT_HELP } from '../common/exit.ts'
import { collected, jsonOption } from '../common/options.ts'
import { printJson, printNote } from '../common/output.ts'

const EXAMPLES = `
Examples:
  stowage download $ROOT --url http://127.0.0.1:8642 --project demo --token-file token.txt -o model.txt
  stowage download $ROOT --format json -o model.json        one JSON array
  stowage download $ROOT --format ndjson | jq -r .name      to a pipe, one object a line
  stowage download $NEW --base old.txt -o changes.txt       only what this older download lacks, as deltas on it
  stowage download $NEW --have $OLD -o changes.txt          the same without its file, and without deltas
  stowage download $NEW --cache ~/.cache/stowage -o new.txt objects of earlier downloads come from the cache
  stowage download $ROOT -o model.txt --json                prints {"objects", "missing", "closure", ...}

The root comes first, each object once. The file appears under its name when it is complete. If a download is
interrupted, the received part stays in "<file>.partial", and running the command again continues from there. There is no
such file for a pipe, or with --cache.
${CONNECT_HELP}
${TRANSFER_EXIT_HELP}`

interface DownloadCommandOptions extends ConnectOptions {
  readonly output?: string
  readonly format: Format
  readonly have?: readonly string[]
  readonly base?: string
  readonly cache?: string
  readonly resume: boolean
  readonly verifyIds?: boolean
}

export function downloadCommand(): Command {
  const command = new Command('download')
    .summary('fetch an object with everything below it')
    .description('Fetch an object with everything below it, into a file or to standard output.')
    .argument('<root>', 'the id of the object')
  return addConnectOptions(command)
    .addOption(
      new Option(
        '-o, --output <file>',
        'the file to write; an existing file is replaced when the new one is complete; - is standard output',
      ),
    )
    .addOption(formatOption('lines'))
    .addOption(
      new Option(
        '--have <root>',
        'omit the objects below this root, which you have: <id> or <id>@<closure>; repeatable',
      ).argParser(collected),
    )
    .addOption(
      new Option(
        '--base <file>',
        'the file of an earlier download: its objects are omitted, and changed ones are sent as deltas on it; with --have, the roots named there are omitted instead',
      ),
    )
    .addOption(new Option('--cache <folder>', 'cache objects in this folder, and look there first'))
    .addOption(new Option('--resume', 'continue from "<file>.partial", which an earlier run left').default(true))
    .addOption(new Option('--no-resume', 'start again, and keep nothing'))
    .addOption(new Option('--verify-ids', 'compare each id with the hash of its object, if ids are hashes'))
    .addOption(jsonOption('print a summary {"root", "objects", "missing", "closure", ...}; needs --output'))
    .addHelpText('after', EXAMPLES)
    .action(download)
}

/** What is asked for. */
interface Wanted {
  readonly root: string
  /** The roots whose objects are omitted. */
  readonly have: readonly string[]
  readonly bases: BaseFile | undefined
}

interface Summary {
  info: GraphInfo | undefined
  progress: GraphProgress | undefined
}

async function download(root: string, options: DownloadCommandOptions, command: Command): Promise<void> {
  const { cache, json } = options
  const output = options.output === STDOUT ? undefined : options.output
  if (json === true && output === undefined)
    return command.error('--json needs --output: standard output holds the objects otherwise')
  const clientOptions: Partial<ClientOptions> = cache === undefined ? {} : { cache: await openCache(cache) }
  try {
    await withProject(
      options,
      command,
      async (connected) => {
        const summary: Summary = { info: undefined, progress: undefined }
        await using bases = options.base === undefined ? undefined : await BaseFile.open(options.base, connected.signal)
        const wanted = { root, have: options.have ?? (bases?.have === undefined ? [] : [bases.have]), bases }
        if (output === undefined)
          await transfer(wanted, connected, options, summary, stdoutSink(connected.signal), undefined)
        else await toFile(wanted, connected, options, summary, output)
        report(wanted, { ...options, output }, summary)
      },
      clientOptions,
    )
  } finally {
    if (cache !== undefined) await (clientOptions.cache as Partial<AsyncDisposable>)[Symbol.asyncDispose]?.()
  }
}

async function openCache(path: string): Promise<NonNullable<ClientOptions['cache']>> {
  const { levelCache } = await import('../../client/level-cache.ts')
  return levelCache({ path })
}

async function toFile(
  wanted: Wanted,
  connected: Connected,
  options: DownloadCommandOptions,
  summary: Summary,
  path: string,
): Promise<void> {
  const { cache, resume } = options
  const asked = JSON.stringify([connected.address, wanted.root, ...wanted.have])
  let isWorthKeeping = true
  const sink = await fileSink(path)
  const partial =
    resume && cache === undefined && sink.isRegular ? new PartialFile(`${path}.partial`, asked) : undefined
  try {
    await transfer(wanted, connected, options, summary, sink, partial)
    isWorthKeeping = false
  } catch (error) {
    if (error instanceof ClientError && (error.code === 'integrity_failed' || error.code === 'not_found'))
      isWorthKeeping = false
    throw error
  } finally {
    await sink.close()
    await partial?.close({ keep: isWorthKeeping })
  }
}

async function transfer(
  { root, have, bases }: Wanted,
  { project, signal, openProgress }: Connected,
  options: DownloadCommandOptions,
  summary: Summary,
  sink: Sink,
  journal: PartialFile | undefined,
): Promise<void> {
  const { verifyIds = false, format } = options
  const progress = await openProgress()
  const graphOptions: GraphOptions = {
    signal,
    have,
    verifyIds,
    journal,
    ...(bases === undefined ? {} : { bases }),
    onInfo: (info) => (summary.info = info),
    onProgress: (at) => {
      summary.progress = at
      const { keptBytes: skipped, receivedBytes, totalBytes: total } = at
      progress.update({ done: skipped + receivedBytes, total, skipped, text: transferText(at) })
    },
  }
  try {
    const writer = new FormatWriter(format)
    for await (const batch of project.graphTexts(root, graphOptions)) await sink.write(writer.batch(batch))
    await sink.write(writer.end())
    await sink.finish()
  } finally {
    progress.stop()
  }
}

/** The progress of a download, for people. */
export function transferText({ objects, cached, receivedBytes, keptBytes, resumes, restarts }: GraphProgress): string {
  const parts = [formatCount(objects, 'object'), `${formatBytes(receivedBytes)} received`]
  if (cached > 0) parts.push(`${cached.toLocaleString('en-US')} from the cache`)
  if (keptBytes > 0) parts.push(`${formatBytes(keptBytes)} from an earlier run`)
  if (resumes > 0) parts.push(`connection lost ${formatCount(resumes, 'time')}`)
  if (restarts > 0) parts.push(`restarted ${formatCount(restarts, 'time')}`)
  return parts.join(', ')
}

/** Throws `FindingsError` when objects are missing, so that scripts see it in the exit code. */
function report({ root, have }: Wanted, { output, json }: DownloadCommandOptions, { info, progress }: Summary): void {
  const { objects = 0, cached = 0, receivedBytes = 0, keptBytes = 0, resumes = 0, restarts = 0 } = progress ?? {}
  const missing = info?.missing ?? 0
  if (json === true) {
    printJson({
      root,
      file: output,
      objects,
      missing,
      closure: info?.closure,
      have: Object.fromEntries(info?.have ?? []),
      cached,
      receivedBytes,
      keptBytes,
      resumes,
      restarts,
    })
  } else if (output !== undefined && progress !== undefined) {
    printNote(`${output}: ${transferText(progress)}`)
  }
  for (const known of have) {
    const { id } = parseHaveRoot(known)
    const verdict = info?.have.get(id)
    if (info !== undefined && verdict !== 'subtracted')
      printNote(`the objects below ${id} were not omitted: the server says "${verdict ?? 'nothing about it'}"`)
  }
  if (missing === 0) return
  printNote(`${formatCount(missing, 'object')} below the root the server does not hold`)
  throw new FindingsError(EXIT.missing)
}
