import { Command } from 'commander'
import { addConnectOptions, CONNECT_HELP, type ConnectOptions, withProject } from '../client/connect.ts'
import { TRANSFER_EXIT_HELP } from '../common/exit.ts'
import { jsonOption } from '../common/options.ts'
import { printJson, printLine, printNote } from '../common/output.ts'
import { printable } from '../common/words.ts'

const EXAMPLES = `
Examples:
  stowage model list --url http://127.0.0.1:8642 --project demo --token-file token.txt
  stowage model create 'Town hall'                          with STOWAGE_URL, STOWAGE_PROJECT and STOWAGE_TOKEN set
  MODEL=$(stowage model create 'Town hall')                 stdout holds the id alone

A model is a named line of versions. "stowage upload --model NAME" makes the model, too, where there is none of that name.
${CONNECT_HELP}
${TRANSFER_EXIT_HELP}`

export function modelCommand(): Command {
  return new Command('model')
    .summary('list and make models')
    .description('List and make models: named lines of versions.')
    .addCommand(listCommand())
    .addCommand(createCommand())
    .addHelpText('after', EXAMPLES)
}

function listCommand(): Command {
  return addConnectOptions(
    new Command('list')
      .summary('show the models of a project')
      .description('Show the models of a project, the oldest first: id, number of versions, name.'),
  )
    .addOption(jsonOption('print one JSON object a line'))
    .addHelpText('after', CONNECT_HELP)
    .action((options: ConnectOptions, command: Command) =>
      withProject(options, command, async ({ models }) => {
        for await (const page of models.list()) {
          for (const model of page) {
            const { id, name, versionCount } = model
            if (options.json === true) printJson(model)
            else printLine(`${id}  ${String(versionCount).padStart(6)}  ${printable(name)}`)
          }
        }
      }),
    )
}

function createCommand(): Command {
  return addConnectOptions(new Command('create').summary('make a model').description('Make a model. Prints its id.'))
    .argument('<name>', 'the name, for people; several models may have the same')
    .addOption(jsonOption('print the model'))
    .addHelpText('after', CONNECT_HELP)
    .action((name: string, options: ConnectOptions, command: Command) =>
      withProject(options, command, async ({ models }) => {
        const model = await models.create(name)
        if (options.json === true) return printJson(model)
        printNote(`model ${model.id} is called "${printable(model.name)}"`)
        printLine(model.id)
      }),
    )
}
