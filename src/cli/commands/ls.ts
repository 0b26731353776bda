import { Command, Option } from 'commander'
import type { ObjectText } from '../../client/index.ts'
import { addConnectOptions, CONNECT_HELP, type ConnectOptions, type Connected, withProject } from '../client/connect.ts'
import { referencesOf } from '../client/roots.ts'
import { stdoutSink } from '../client/sink.ts'
import { formatCount, printable } from '../common/format.ts'
import { EXIT, FindingsError, TRANSFER_EXIT_HELP } from '../common/exit.ts'
import { jsonOption } from '../common/options.ts'
import { printNote } from '../common/output.ts'
import { listProjects } from './project.ts'

const EXAMPLES = `
Examples:
  stowage ls $ROOT --url http://127.0.0.1:8642 --project demo --token-file token.txt
  stowage ls $ROOT --recursive | sort -k2 -n | tail         the largest objects of a model
  stowage ls $ROOT --recursive --json | jq -r .type | sort | uniq -c
  stowage ls --data /var/lib/stowage                        the projects of a folder on this machine
  stowage ls $ROOT --data /var/lib/stowage --project demo   objects in it

Lists an object and the objects that it refers to: id, bytes of JSON, number of children, type. Without a root, it
lists the projects of a data folder that no server has open.
${CONNECT_HELP}
${TRANSFER_EXIT_HELP}`

interface LsCommandOptions extends ConnectOptions {
  readonly recursive?: boolean
  readonly typeField: string
}

export function lsCommand(): Command {
  const command = new Command('ls')
    .summary('list an object and those below it, or the projects of a folder')
    .description('List an object and those that it refers to, or the projects of a folder on this machine.')
    .argument('[root]', 'the id of the object; without it, the projects of --data')
  return addConnectOptions(command)
    .addOption(new Option('-r, --recursive', 'everything below it'))
    .addOption(new Option('--type-field <name>', 'the member that names the type').default('speckle_type'))
    .addOption(jsonOption('print {"id", "bytes", "children", "type"} for each, one a line'))
    .addHelpText('after', EXAMPLES)
    .action(list)
}

async function list(root: string | undefined, options: LsCommandOptions, command: Command): Promise<void> {
  if (root === undefined) {
    if (options.data === undefined)
      return command.error('<root> is missing: name an object, or a folder with --data to list its projects')
    return listProjects({ data: options.data, json: options.json })
  }
  await withProject(options, command, (connected) => listObjects(root, connected, options))
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
