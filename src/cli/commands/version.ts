import { Command, Option } from 'commander'
import { CONNECT_HELP, type ConnectOptions, withProject } from '../client/connect.ts'
import { projectCommand } from '../client/project-command.ts'
import { TRANSFER_EXIT_HELP } from '../common/exit.ts'
import { ruleOf, type RuleOptions, ruleOptions } from '../client/retention.ts'
import { jsonOption } from '../common/options.ts'
import { printJson, printLine, printNote } from '../common/output.ts'
import { formatCount, printable } from '../common/format.ts'
import { StowageError } from '../../errors.ts'
import { quoted } from '../../object/id.ts'

const EXAMPLES = `
Examples:
  stowage version list 'Town hall' --url http://127.0.0.1:8642 --project demo --token-file token.txt
  stowage version create 'Town hall' $ROOT --message 'Stairs moved'
  stowage version delete 'Town hall' $VERSION               can be undone for 14 days by default
  stowage version restore 'Town hall' $VERSION
  stowage version keep 'Town hall' $VERSION                 no retention rule deletes it
  stowage version prune 'Town hall' --keep-last 20 --dry-run
  stowage download $(stowage version list 'Town hall' --json | head -1 | jq -r .rootObjectId) -o latest.txt

A version records one state of a model: the graph below one root object. A new version starts the automations that wait for one.
"stowage upload --model NAME --message TEXT" uploads and creates the version at once.
${CONNECT_HELP}
${TRANSFER_EXIT_HELP}`

interface ListOptions extends ConnectOptions {
  readonly deleted?: boolean
}

interface PruneOptions extends ConnectOptions, RuleOptions {
  readonly dryRun?: boolean
}

interface KeepOptions extends ConnectOptions {
  readonly undo?: boolean
}

interface CreateOptions extends ConnectOptions {
  readonly message: string
}

export function versionCommand(): Command {
  return new Command('version')
    .summary('list, make, keep, delete and restore versions of a model')
    .description('List, make, keep, delete and restore versions of a model.')
    .addCommand(listCommand())
    .addCommand(createCommand())
    .addCommand(deleteCommand())
    .addCommand(restoreCommand())
    .addCommand(keepCommand())
    .addCommand(pruneCommand())
    .addHelpText('after', EXAMPLES)
}

function listCommand(): Command {
  return projectCommand(
    'list',
    'show the versions of a model',
    'Show the versions of a model, the newest first: id, time, root, message.',
  )
    .argument('<model>', 'the name of the model, or its id')
    .addOption(new Option('--deleted', 'deleted versions too, as long as they can be restored'))
    .addOption(jsonOption('print one JSON object a line'))
    .action((nameOrId: string, options: ListOptions, command: Command) =>
      withProject(options, command, async ({ models }) => {
        const deleted = options.deleted === true
        for await (const page of models.versions(await models.get(nameOrId), { deleted })) {
          for (const version of page) {
            const { id, createdAt, rootObjectId, message, kept, deletedAt } = version
            const marks = [...(kept ? ['(kept)'] : []), ...(deletedAt === null ? [] : [`(deleted ${deletedAt})`])]
            const words = [printable(message), ...marks].join('  ')
            if (options.json === true) printJson(version)
            else printLine(`${id}  ${createdAt}  ${printable(rootObjectId)}  ${words}`.trimEnd())
          }
        }
      }),
    )
}

function createCommand(): Command {
  return projectCommand('create', 'make a version', 'Make a version of a model. Prints its id.')
    .argument('<model>', 'the name of the model, or its id')
    .argument('<root>', 'the id of the root object of the version')
    .addOption(new Option('--message <text>', 'the message of the version').default(''))
    .addOption(jsonOption('print the version'))
    .action((nameOrId: string, root: string, options: CreateOptions, command: Command) =>
      withProject(options, command, async ({ models }) => {
        const model = await models.get(nameOrId)
        const version = await models.createVersion(model, root, options.message)
        if (options.json === true) return printJson(version)
        printNote(`version ${version.id} of "${printable(model.name)}"`)
        printLine(version.id)
      }),
    )
}

function deleteCommand(): Command {
  return projectCommand('delete', 'delete a version', 'Delete a version. It can be restored for 14 days by default.')
    .argument('<model>', 'the name of the model, or its id')
    .argument('<version>', 'the id of the version')
    .addOption(jsonOption('print the version'))
    .action((nameOrId: string, versionId: string, options: ConnectOptions, command: Command) =>
      withProject(options, command, async ({ models }) => {
        const model = await models.get(nameOrId)
        const version = await models.deleteVersion(model, versionId)
        if (options.json === true) return printJson(version)
        printNote(`deleted; "stowage version restore ${model.id} ${version.id}" brings it back`)
      }),
    )
}

function restoreCommand(): Command {
  return projectCommand('restore', 'restore a deleted version', 'Restore a deleted version.')
    .argument('<model>', 'the name of the model, or its id')
    .argument('<version>', 'the id of the version')
    .addOption(jsonOption('print the version'))
    .action((nameOrId: string, versionId: string, options: ConnectOptions, command: Command) =>
      withProject(options, command, async ({ models }) => {
        const version = await models.restoreVersion(await models.get(nameOrId), versionId)
        if (options.json === true) return printJson(version)
        printNote(`restored version ${version.id}`)
      }),
    )
}

function keepCommand(): Command {
  return projectCommand(
    'keep',
    'keep a version from the retention rule',
    'Mark a version as kept, so that no retention rule deletes it.',
  )
    .argument('<model>', 'the name of the model, or its id')
    .argument('<version>', 'the id of the version')
    .addOption(new Option('--undo', 'remove the mark'))
    .addOption(jsonOption('print the version'))
    .action((nameOrId: string, versionId: string, options: KeepOptions, command: Command) =>
      withProject(options, command, async ({ models }) => {
        const kept = options.undo !== true
        const version = await models.changeVersion(await models.get(nameOrId), versionId, { kept })
        if (options.json === true) return printJson(version)
        printNote(kept ? `no rule deletes version ${version.id}` : `a rule may delete version ${version.id} again`)
      }),
    )
}

function pruneCommand(): Command {
  const command = projectCommand(
    'prune',
    'delete the versions that a retention rule does not keep',
    'Delete the versions that the retention rule of the model, or the one of the options, does not keep. They can be restored like any deleted version. The latest version, pinned ones and those that are marked as kept always stay.',
  )
    .argument('<model>', 'the name of the model, or its id')
    .addOption(new Option('--dry-run', 'only show what would be deleted'))
    .addOption(jsonOption('print one JSON object a line'))
    .action((nameOrId: string, options: PruneOptions, command: Command) =>
      withProject(options, command, async ({ models }) => {
        const model = await models.get(nameOrId)
        const retention = ruleOf(options)
        if (retention === undefined && model.retention === null) throw noRule(nameOrId)
        const request = { dryRun: options.dryRun === true, ...(retention === undefined ? {} : { retention }) }
        let count = 0
        for (let hasMore = true; hasMore;) {
          const pruned = await models.prune(model, request)
          for (const version of pruned.versions) {
            const { id, createdAt, message } = version
            if (options.json === true) printJson(version)
            else printLine(`${id}  ${createdAt}  ${printable(message)}`.trimEnd())
          }
          count += pruned.versions.length
          hasMore = pruned.hasMore && !request.dryRun
          if (pruned.hasMore && request.dryRun) printNote('and more')
        }
        printNote(`${formatCount(count, 'version')} ${request.dryRun ? 'would be deleted' : 'deleted'}`)
      }),
    )
  for (const option of ruleOptions()) command.addOption(option)
  return command
}

function noRule(nameOrId: string): StowageError {
  return new StowageError(
    'invalid_request',
    `the model ${quoted(nameOrId)} has no retention rule; give one, such as --keep-last 20, or set the rule of the model with "stowage model retention"`,
  )
}
