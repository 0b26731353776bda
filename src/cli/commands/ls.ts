import { Command, Option } from 'commander'
import type { ObjectText, RemotePage, RemoteUnreferencedObject } from '../../client/index.ts'
import { addConnectOptions, CONNECT_HELP, type ConnectOptions, type Connected, withProject } from '../client/connect.ts'
import { referencesOf } from '../client/roots.ts'
import { stdoutSink } from '../client/sink.ts'
import { formatCount, formatDuration, printable } from '../common/format.ts'
import { EXIT, FindingsError, TRANSFER_EXIT_HELP } from '../common/exit.ts'
import { jsonOption } from '../common/options.ts'
import { printNote } from '../common/output.ts'
import { listProjects } from './project.ts'

const EXAMPLES = `
Examples:
  stowage ls $ROOT --url http://127.0.0.1:8642 --project demo --token-file token.txt
  stowage ls $ROOT --recursive | sort -k2 -n | tail         the largest objects of a model
  stowage ls $ROOT --recursive --json | jq -r .type | sort | uniq -c
  stowage ls --unreferenced --project demo                  objects that no version and no pin leads to
  stowage ls --unreferenced --tops --json | jq -r .id       the tops of graphs among them, for "stowage collect"
  stowage ls --data /var/lib/stowage                        the projects of a folder on this machine
  stowage ls $ROOT --data /var/lib/stowage --project demo   objects in it

Lists an object and the objects that it refers to: id, bytes of JSON, number of children, type. Without a root, it
lists the projects of a data folder that no server has open. With --unreferenced, it lists the objects that no version
and no pin leads to: id, bytes of JSON, age, state.
${CONNECT_HELP}
${TRANSFER_EXIT_HELP}`

const UNREFERENCED_AT_ONCE = 1_000

interface LsCommandOptions extends ConnectOptions {
  readonly recursive?: boolean
  readonly typeField: string
  readonly unreferenced?: boolean
  readonly tops?: boolean
}

export function lsCommand(): Command {
  const command = new Command('ls')
    .summary('list an object and those below it, or the projects of a folder')
    .description('List an object and those that it refers to, or the projects of a folder on this machine.')
    .argument('[root]', 'the id of the object; without it, the projects of --data')
  return addConnectOptions(command)
    .addOption(new Option('-r, --recursive', 'everything below it'))
    .addOption(new Option('--type-field <name>', 'the member that names the type').default('speckle_type'))
    .addOption(new Option('--unreferenced', 'objects that no version and no pin leads to, instead of those of a root'))
    .addOption(new Option('--tops', 'of these, objects that no other object refers to').implies({ unreferenced: true }))
    .addOption(jsonOption('print {"id", "bytes", "children", "type"} for each, one a line'))
    .addHelpText('after', EXAMPLES)
    .action(list)
}

async function list(root: string | undefined, options: LsCommandOptions, command: Command): Promise<void> {
  if (options.unreferenced === true) {
    if (root !== undefined) return command.error('--unreferenced lists a whole project; leave out <root>')
    return withProject(options, command, (connected) => listUnreferenced(connected, options))
  }
  if (root === undefined) {
    if (options.data === undefined)
      return command.error('<root> is missing: name an object, or a folder with --data to list its projects')
    return listProjects({ data: options.data, json: options.json })
  }
  await withProject(options, command, (connected) => listObjects(root, connected, options))
}

async function listUnreferenced(
  { project, signal }: Connected,
  { json = false, tops = false }: LsCommandOptions,
): Promise<void> {
  const stdout = stdoutSink(signal)
  if (!json) await stdout.write(unreferencedLine('id', 'bytes', 'age', 'state'))
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page: RemotePage<RemoteUnreferencedObject> = await project.upkeep.unreferenced({
      limit: UNREFERENCED_AT_ONCE,
      tops,
      signal,
      ...(cursor === undefined ? {} : { cursor }),
    })
    for (const { id, jsonBytes, ageMs, state, isTop } of page.items)
      await stdout.write(
        json
          ? `${JSON.stringify({ id, bytes: jsonBytes, ageMs, state, isTop })}\n`
          : unreferencedLine(id, String(jsonBytes), formatDuration(ageMs), isTop ? `${state}, top` : state),
      )
    cursor = page.cursor
  }
}

function unreferencedLine(id: string, bytes: string, age: string, state: string): string {
  return `${printable(id).padEnd(32)}  ${bytes.padStart(10)}  ${age.padStart(10)}  ${state}\n`
}

async function listObjects(root: string, connected: Connected, options: LsCommandOptions): Promise<void> {
  const { json = false, recursive = false, typeField } = options
  let missing = 0
  const onMissing = (count: number): void => void (missing += count)
  const stdout = stdoutSink(connected.signal)
  let head = json ? '' : line('id', 'bytes', 'children', 'type')
  for await (const batch of recursive
    ? everything(root, connected, onMissing)
    : withChildren(root, connected, onMissing)) {
    const rows = batch.map((object) => rowOf(object, typeField))
    await stdout.write(
      head +
        rows
          .map((row) =>
            json
              ? `${JSON.stringify(row)}\n`
              : line(row.id, String(row.bytes), String(row.children), printable(row.type)),
          )
          .join(''),
    )
    head = ''
  }
  if (missing === 0) return
  printNote(`${formatCount(missing, 'object')} missing`)
  throw new FindingsError(EXIT.missing)
}

function everything(
  root: string,
  { project, signal }: Connected,
  onMissing: (count: number) => void,
): AsyncIterable<readonly ObjectText[]> {
  return project.graphTexts(root, { signal, onInfo: ({ missing }) => onMissing(missing) })
}

async function* withChildren(
  root: string,
  { project, signal }: Connected,
  onMissing: (count: number) => void,
): AsyncGenerator<readonly ObjectText[]> {
  const object = await project.getText(root, { signal })
  if (object === undefined) throw new Error(`there is no object ${JSON.stringify(root)} in this project`)
  yield [object]
  yield* project.listTexts(referencesOf(object.json), { signal, onMissing: (ids) => onMissing(ids.length) })
}

interface Row {
  readonly id: string
  readonly bytes: number
  readonly children: number
  readonly type: string
}

function rowOf({ id, json }: ObjectText, typeField: string): Row {
  const type = (JSON.parse(json) as Readonly<Record<string, unknown>>)[typeField]
  return {
    id,
    bytes: Buffer.byteLength(json),
    children: new Set(referencesOf(json)).size,
    type: typeof type === 'string' ? type : '',
  }
}

function line(id: string, bytes: string, children: string, type: string): string {
  return `${id.padEnd(32)}  ${bytes.padStart(10)}  ${children.padStart(8)}  ${type}`.trimEnd() + '\n'
}
