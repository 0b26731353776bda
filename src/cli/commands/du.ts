import { Command } from 'commander'
import type { RemoteUsage } from '../../client/index.ts'
import { addConnectOptions, CONNECT_HELP, type ConnectOptions, withProject } from '../client/connect.ts'
import { TRANSFER_EXIT_HELP } from '../common/exit.ts'
import { formatBytes, formatCount, printable } from '../common/format.ts'
import { jsonOption } from '../common/options.ts'
import { printJson, printLine } from '../common/output.ts'

const EXAMPLES = `
Examples:
  stowage du --url http://127.0.0.1:8642 --project demo --token-file token.txt
  stowage du 'Town hall'                                    each version of a model
  stowage du --json | jq .unreferencedJsonBytes

Bytes are those of JSON. "own" counts objects that nothing else holds, which a deletion can free. Deleted models and
versions count until they are removed. Replaced packs leave the disk a day after the merge that replaced them. Plans
make downloads fast; the server makes and removes them. Files of runs are not counted.
${CONNECT_HELP}
${TRANSFER_EXIT_HELP}`

const ID_WIDTH = 32
const NUMBER_WIDTH = 12
const HEAD: readonly string[] = ['objects', 'bytes', 'own objects', 'own bytes']

type Share = Pick<RemoteUsage['roots'][number], 'objects' | 'jsonBytes' | 'ownObjects' | 'ownJsonBytes'>

export function duCommand(): Command {
  return addConnectOptions(
    new Command('du')
      .summary('show the size of a project, its models and its versions')
      .description('Show the objects and bytes of a project, its models, versions and pins, in total and own.'),
  )
    .argument('[model]', 'the name of a model, or its id: shows its versions')
    .addOption(jsonOption('print everything as one JSON object'))
    .addHelpText('after', EXAMPLES)
    .action((nameOrId: string | undefined, options: ConnectOptions, command: Command) =>
      withProject(options, command, async ({ models, project, signal }) => {
        const usage = await project.usage({ signal })
        if (options.json === true) return printJson(usage)
        if (nameOrId !== undefined) return printVersions(usage, (await models.get(nameOrId, { deleted: true })).id)
        const names = new Map<string, string>()
        for await (const page of models.list({ deleted: true }))
          for (const { id, name, deletedAt } of page) names.set(id, deletedAt === null ? name : `${name}  (deleted)`)
        for (const { id, name } of await project.pins.list({ signal })) if (name !== null) names.set(id, name)
        printProject(usage, names)
      }),
    )
}

function printProject(usage: RemoteUsage, names: ReadonlyMap<string, string>): void {
  const { objects, jsonBytes, unreferencedObjects, unreferencedJsonBytes, models, roots } = usage
  const { storedBytes, retiredBytes, planBytes } = usage
  printLine(`${formatCount(objects, 'object')}, ${formatBytes(jsonBytes)} of JSON`)
  printLine(
    `${formatBytes(storedBytes)} on disk in packs, ${formatBytes(retiredBytes)} in replaced packs, ${formatBytes(planBytes)} in plans`,
  )
  printLine(`${formatCount(unreferencedObjects, 'object')} unreferenced, ${formatBytes(unreferencedJsonBytes)} of JSON`)
  printLine(row('model or pin', HEAD))
  for (const { modelId, ...share } of models) printLine(row(modelId, cells(share), printable(names.get(modelId) ?? '')))
  for (const { id, rootObjectId, ...share } of roots.filter(({ kind }) => kind !== 'version')) {
    const name = names.get(id)
    printLine(row(id, cells(share), printable(`pin of ${rootObjectId}${name === undefined ? '' : `  ${name}`}`)))
  }
}

function printVersions({ roots }: RemoteUsage, modelId: string): void {
  printLine(row('version', HEAD))
  for (const { id, rootObjectId, ...share } of roots.filter((root) => root.modelId === modelId))
    printLine(row(id, cells(share), printable(rootObjectId)))
}

function cells({ objects, jsonBytes, ownObjects, ownJsonBytes }: Share): readonly string[] {
  return [objects, jsonBytes, ownObjects, ownJsonBytes].map(String)
}

function row(id: string, numbers: readonly string[], words = ''): string {
  const columns = numbers.map((text) => text.padStart(NUMBER_WIDTH))
  return `${id.padEnd(ID_WIDTH)}  ${columns.join('  ')}  ${words}`.trimEnd()
}
