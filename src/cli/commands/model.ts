import { Command, Option } from 'commander'
import { CONNECT_HELP, type ConnectOptions, withProject } from '../client/connect.ts'
import { projectCommand } from '../client/project-command.ts'
import { ruleOf, type RuleOptions, ruleOptions, ruleWords } from '../client/retention.ts'
import { TRANSFER_EXIT_HELP } from '../common/exit.ts'
import { jsonOption } from '../common/options.ts'
import { printJson, printLine, printNote } from '../common/output.ts'
import { printable } from '../common/format.ts'

const EXAMPLES = `
Examples:
  stowage model list --url http://127.0.0.1:8642 --project demo --token-file token.txt
  stowage model create 'Town hall'                          with STOWAGE_URL, STOWAGE_PROJECT and STOWAGE_TOKEN set
  MODEL=$(stowage model create 'Town hall')                 stdout has only the id
  stowage model retention 'Town hall' --keep-last 20 --keep-daily 90
  stowage model retention 'Town hall'                       shows the rule; --none removes it
  stowage model delete 'Town hall'                          can be undone for 14 days by default
  stowage model restore 'Town hall'

A model is a named series of versions. "stowage upload --model NAME" also creates the model if none has that name.
${CONNECT_HELP}
${TRANSFER_EXIT_HELP}`

interface ListOptions extends ConnectOptions {
  readonly deleted?: boolean
}

interface RetentionOptions extends ConnectOptions, RuleOptions {
  readonly none?: boolean
}

const RULE_NAMES = ['keepLast', 'keepDaily', 'keepAll']

export function modelCommand(): Command {
  return new Command('model')
    .summary('list, make, delete and restore models; set their retention rules')
    .description(
      'List, make, delete and restore models, which are named series of versions, and set their retention rules.',
    )
    .addCommand(listCommand())
    .addCommand(createCommand())
    .addCommand(retentionCommand())
    .addCommand(deleteCommand())
    .addCommand(restoreCommand())
    .addHelpText('after', EXAMPLES)
}

function listCommand(): Command {
  return projectCommand(
    'list',
    'show the models of a project',
    'Show the models of a project, the oldest first: id, number of versions, name.',
  )
    .addOption(new Option('--deleted', 'deleted models too, as long as they can be restored'))
    .addOption(jsonOption('print one JSON object a line'))
    .action((options: ListOptions, command: Command) =>
      withProject(options, command, async ({ models }) => {
        for await (const page of models.list({ deleted: options.deleted === true })) {
          for (const model of page) {
            const { id, name, versionCount, deletedAt } = model
            const deleted = deletedAt === null ? '' : `  (deleted ${deletedAt})`
            if (options.json === true) printJson(model)
            else printLine(`${id}  ${String(versionCount).padStart(6)}  ${printable(name)}${deleted}`)
          }
        }
      }),
    )
}

function createCommand(): Command {
  return projectCommand('create', 'make a model', 'Make a model. Prints its id.')
    .argument('<name>', 'the name to show; several models may have the same name')
    .addOption(jsonOption('print the model'))
    .action((name: string, options: ConnectOptions, command: Command) =>
      withProject(options, command, async ({ models }) => {
        const model = await models.create(name)
        if (options.json === true) return printJson(model)
        printNote(`model ${model.id} is called "${printable(model.name)}"`)
        printLine(model.id)
      }),
    )
}

function retentionCommand(): Command {
  const command = projectCommand(
    'retention',
    'show or set the retention rule of a model',
    'Show the retention rule of a model, or replace it. A version stays if one of the options keeps it. The latest version, pinned ones and those that are marked as kept always stay. The server deletes the others once a day; they can be restored for 14 days by default.',
  )
    .argument('<model>', 'the name of the model, or its id')
    .addOption(new Option('--none', 'remove the rule: every version is kept').conflicts(RULE_NAMES))
    .addOption(jsonOption('print the model'))
    .action((nameOrId: string, options: RetentionOptions, command: Command) =>
      withProject(options, command, async ({ models }) => {
        const found = await models.get(nameOrId)
        const retention = options.none === true ? null : ruleOf(options)
        const model = retention === undefined ? found : await models.change(found, { retention })
        if (options.json === true) return printJson(model)
        printLine(ruleWords(model.retention))
        if (retention !== undefined && retention !== null)
          printNote(
            `applied once a day; "stowage version prune ${model.id} --dry-run" shows what the rule would delete now`,
          )
      }),
    )
  for (const option of ruleOptions()) command.addOption(option)
  return command
}

function deleteCommand(): Command {
  return projectCommand(
    'delete',
    'delete a model',
    'Delete a model. Its automations no longer start. It can be restored for 14 days by default.',
  )
    .argument('<model>', 'the name of the model, or its id')
    .addOption(jsonOption('print the model'))
    .action((nameOrId: string, options: ConnectOptions, command: Command) =>
      withProject(options, command, async ({ models }) => {
        const model = await models.delete(await models.get(nameOrId))
        if (options.json === true) return printJson(model)
        printNote(`deleted "${printable(model.name)}"; "stowage model restore ${model.id}" brings it back`)
      }),
    )
}

function restoreCommand(): Command {
  return projectCommand('restore', 'restore a deleted model', 'Restore a deleted model.')
    .argument('<model>', 'the name of the model, or its id')
    .addOption(jsonOption('print the model'))
    .action((nameOrId: string, options: ConnectOptions, command: Command) =>
      withProject(options, command, async ({ models }) => {
        const model = await models.restore(await models.get(nameOrId, { deleted: true }))
        if (options.json === true) return printJson(model)
        printNote(`restored "${printable(model.name)}"`)
      }),
    )
}
