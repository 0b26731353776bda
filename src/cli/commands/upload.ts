import { Command, Option } from 'commander'
import type { Model, Version } from '../../automation-server/index.ts'
import type { ObjectText, UploadProgress, UploadResult, UploadSource } from '../../client/index.ts'
import { CONCURRENCY_MAX } from '../../client/common/concurrency.ts'
import { BATCH_BYTES, BATCH_BYTES_MAX } from '../../client/upload/upload-batches.ts'
import { addConnectOptions, CONNECT_HELP, type ConnectOptions, type Connected, withProject } from '../client/connect.ts'
import { type ObjectFile, openObjectFile, STDIN } from '../client/object-file.ts'
import type { Progress } from '../client/progress.ts'
import { openKnownObjects, type KnownObjects } from '../client/known-objects.ts'
import { RootFinder } from '../client/roots.ts'
import { formatBytes, formatCount, printable } from '../common/format.ts'
import { TRANSFER_EXIT_HELP } from '../common/exit.ts'
import { collected, integerUpTo, jsonOption } from '../common/options.ts'
import { printJson, printLine, printNote } from '../common/output.ts'

const ROOTS_SHOWN_MAX = 100

const EXAMPLES = `
Examples:
  stowage upload model.json --url http://127.0.0.1:8642 --project demo --token-file token.txt
  stowage upload model.ndjson.gz                            with STOWAGE_URL, STOWAGE_PROJECT and STOWAGE_TOKEN set
  make-model | stowage upload -                             from a pipe, of any length
  stowage download $ROOT --url $OTHER | stowage upload -    from one server to another
  stowage upload v2.json --have v1.json                     after uploading v1.json: sends only the changes, as deltas
  stowage upload v2.json --model 'Town hall' --message 'Stairs moved'    and create a version of a model
  ROOT=$(stowage upload model.json)                         stdout has only the ids of the roots
  stowage upload model.json --json | jq .sent

A file holds a JSON array of objects, consecutive objects (NDJSON), or lines "<id> TAB <json>" as "stowage download"
writes them; it may be gzipped. Objects are uploaded unchanged; an object without an "id" gets one. Objects that the
server already holds are not sent, so run the command again to continue an upload that was interrupted. With --have, the
command asks once whether the server holds the whole older file; if not, the file has no effect. An object that replaces
one of the older file is sent as a delta if that is smaller. The roots are the objects that no other object in the file
refers to.
${CONNECT_HELP}
${TRANSFER_EXIT_HELP}`

interface UploadCommandOptions extends ConnectOptions {
  readonly concurrency: number
  readonly batchBytes: number
  readonly sendAll?: boolean
  readonly gzip?: boolean
  readonly roots: boolean
  /** By its name or id. */
  readonly model?: string
  readonly message?: string
  readonly root?: string
  readonly have?: readonly string[]
}

export function uploadCommand(): Command {
  const command = new Command('upload')
    .summary('send the objects of a file to a server')
    .description('Send the objects of a file, or of standard input (-), to a server. Prints the ids of the roots.')
    .argument('<file>', 'the file, or - for standard input')
  return addConnectOptions(command)
    .addOption(new Option('--concurrency <n>', 'requests at a time').argParser(integerUpTo(CONCURRENCY_MAX)).default(4))
    .addOption(
      new Option('--batch-bytes <n>', 'JSON in one request, about')
        .argParser(integerUpTo(BATCH_BYTES_MAX))
        .default(BATCH_BYTES),
    )
    .addOption(
      new Option('--have <file>', 'a file that was uploaded before, whose objects need no query; repeatable').argParser(
        collected,
      ),
    )
    .addOption(new Option('--send-all', 'send everything, without asking first which objects the server holds'))
    .addOption(new Option('--gzip', 'send gzip files: fewer bytes, and more work for the server'))
    .addOption(new Option('--no-roots', 'do not search for the roots, which takes up to 64 bytes of memory an object'))
    .addOption(new Option('--model <name>', 'create a version of this model, and the model if none has that name'))
    .addOption(new Option('--message <text>', 'the message of the version'))
    .addOption(new Option('--root <id>', 'the root of the version, if the file has several'))
    .addOption(jsonOption('print {"objects", "sent", "held", "roots", ...}'))
    .addHelpText('after', EXAMPLES)
    .action(upload)
}

async function upload(path: string, options: UploadCommandOptions, command: Command): Promise<void> {
  if ([path, ...(options.have ?? [])].filter((name) => name === STDIN).length > 1)
    return command.error('standard input (-) can be read once only; name files')
  if (options.model === undefined && (options.message ?? options.root) !== undefined)
    return command.error('--message and --root are about a version, and need --model: the name of its model')
  if (options.model !== undefined && !options.roots && options.root === undefined)
    return command.error('--model with --no-roots needs --root: the root of the version')
  await withProject(options, command, async (connected) => {
    const file = await openObjectFile(path, connected.signal)
    const model = options.model === undefined ? undefined : await findModel(options.model, connected)
    const known = await openKnownObjects(options.have ?? [], connected)
    const progress = await connected.openProgress()
    const finder = options.roots ? new RootFinder() : undefined
    try {
      const result = await send(connected, file, options, progress, noted(file.objects, finder, known))
      progress.stop()
      let version: Version | undefined
      try {
        if (model !== undefined) version = await makeVersion(model, rootOf(finder, options), options, connected)
      } finally {
        report(withKnown(result, known), finder, version, options)
      }
    } finally {
      progress.stop()
      await known.close()
    }
  })
}

function send(
  { project, signal }: Connected,
  file: ObjectFile,
  { concurrency, batchBytes, sendAll, gzip }: UploadCommandOptions,
  progress: Progress,
  objects: UploadSource,
): Promise<UploadResult> {
  const onProgress = (at: UploadProgress): void =>
    progress.update({ done: file.bytesRead(), total: file.bytesTotal, text: transferText(at) })
  const body = gzip === true ? 'gzip' : undefined
  return project.upload(objects, { signal, concurrency, batchBytes, sendAll, onProgress, body })
}

/** Objects that are not known to be held, after the roots were looked for. */
async function* noted(
  batches: AsyncIterable<readonly ObjectText[]>,
  finder: RootFinder | undefined,
  known: KnownObjects,
): AsyncGenerator<readonly ObjectText[]> {
  for await (const batch of batches) {
    if (finder !== undefined) for (const object of batch) finder.add(object)
    const rest = await known.leaveOut(batch)
    if (rest.length > 0) yield rest
  }
}

function withKnown(result: UploadResult, { leftOut }: KnownObjects): UploadResult {
  return { ...result, objects: result.objects + leftOut, held: result.held + leftOut }
}

function transferText({ sent, deltas, held, wireBytes, retries }: UploadProgress): string {
  return `${formatCount(sent, 'object')} sent${deltas === 0 ? '' : ` (${deltas.toLocaleString('en-US')} as differences)`}, ${held.toLocaleString('en-US')} held already, ${formatBytes(wireBytes)} on the wire${retries === 0 ? '' : `, ${formatCount(retries, 'retry', 'retries')}`}`
}

/** A model that there is, or the name of one to make. Asked first: an upload may take hours. */
async function findModel(nameOrId: string, { models }: Connected): Promise<Model | string> {
  return (await models.find(nameOrId)) ?? nameOrId
}

/** Throws if the root of the version is ambiguous. */
function rootOf(finder: RootFinder | undefined, { root }: UploadCommandOptions): string {
  const found = finder?.find(1)
  if (root !== undefined) return root
  if (found?.count === 1) return found.roots[0]
  throw new Error(
    `the file has ${formatCount(found?.count ?? 0, 'root')}, and a version has one: name it with --root. All objects are uploaded; "stowage version create" makes the version as well`,
  )
}

async function makeVersion(
  found: Model | string,
  root: string,
  { message = '' }: UploadCommandOptions,
  { models }: Connected,
): Promise<Version> {
  const model = typeof found === 'string' ? await models.create(found) : found
  const version = await models.createVersion(model, root, message)
  printNote(`version ${version.id} of "${printable(model.name)}"`)
  return version
}

function report(
  result: UploadResult,
  finder: RootFinder | undefined,
  version: Version | undefined,
  { json }: UploadCommandOptions,
): void {
  const { lastId: _lastId, ...counts } = result
  const found = finder?.find(ROOTS_SHOWN_MAX)
  if (json === true) {
    printJson({
      ...counts,
      ...(found === undefined ? {} : { roots: found.roots, rootCount: found.count }),
      ...(version === undefined ? {} : { modelId: version.modelId, versionId: version.id }),
    })
    return
  }
  printNote(
    `${formatCount(result.objects, 'object')}: ${transferText(result)}, from ${formatBytes(result.jsonBytes)} of JSON`,
  )
  if (result.differing > 0)
    printNote(
      `${formatCount(result.differing, 'object')} the server holds with another text, which stays: ids do not change their objects`,
    )
  if (result.rewritten > 0)
    printNote(
      `${formatCount(result.rewritten, 'object')} the server keeps without line ends and tabs, or with U+0085, U+2028 and U+2029 escaped; the values are the same`,
    )
  for (const root of found?.roots ?? []) printLine(root)
  if (found !== undefined && found.count > found.roots.length)
    printNote(`and ${formatCount(found.count - found.roots.length, 'more root')}`)
}
