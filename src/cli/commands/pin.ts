import { Command, Option } from 'commander'
import { CONNECT_HELP, type ConnectOptions, withProject } from '../client/connect.ts'
import { projectCommand } from '../client/project-command.ts'
import { TRANSFER_EXIT_HELP } from '../common/exit.ts'
import { durationSeconds, jsonOption } from '../common/options.ts'
import { printJson, printLine, printNote } from '../common/output.ts'
import { printable } from '../common/format.ts'

const EXAMPLES = `
Examples:
  stowage pin add $ROOT --name Permit --reason 'Submitted to the authority' --url ... --project demo --token-file token.txt
  stowage pin add $ROOT --for 90d                           keeps it for 90 days
  stowage pin list
  stowage pin remove $PIN

A pin keeps an object and everything below it, even if no version refers to it. No retention rule deletes a version of
that root.
${CONNECT_HELP}
${TRANSFER_EXIT_HELP}`

interface AddOptions extends ConnectOptions {
  readonly name?: string
  readonly reason?: string
  readonly for?: number
}

export function pinCommand(): Command {
  return new Command('pin')
    .summary('keep objects that no version refers to')
    .description('Add, list and remove pins: each keeps an object and everything below it.')
    .addCommand(addCommand())
    .addCommand(listCommand())
    .addCommand(removeCommand())
    .addHelpText('after', EXAMPLES)
}

function addCommand(): Command {
  return projectCommand('add', 'pin an object', 'Pin an object. Prints the id of the pin.')
    .argument('<root>', 'the id of the object')
    .addOption(new Option('--name <text>', 'the name of the pin'))
    .addOption(new Option('--reason <text>', 'the reason for the pin'))
    .addOption(
      new Option('--for <duration>', 'how long: 12h, 90d (default: without an end)').argParser(durationSeconds),
    )
    .addOption(jsonOption('print the pin'))
    .action((rootObjectId: string, options: AddOptions, command: Command) =>
      withProject(options, command, async ({ project, signal }) => {
        const { name = null, reason = null, for: seconds } = options
        const end = seconds === undefined ? {} : { lifetimeMs: seconds * 1_000 }
        const pin = await project.pins.add({ rootObjectId, name, reason, ...end }, { signal })
        if (options.json === true) return printJson(pin)
        printLine(pin.id)
      }),
    )
}

function listCommand(): Command {
  return projectCommand(
    'list',
    'show the pins of a project',
    'Show the pins of a project, the oldest first: id, end, root, name, reason.',
  )
    .addOption(jsonOption('print one JSON object a line'))
    .action((options: ConnectOptions, command: Command) =>
      withProject(options, command, async ({ project, signal }) => {
        for (const pin of await project.pins.list({ signal })) {
          const { id, endsAt, rootObjectId, name, reason } = pin
          const words = [name, reason].flatMap((text) => (text === null ? [] : [`  ${printable(text)}`])).join('')
          if (options.json === true) printJson(pin)
          else printLine(`${id}  ${(endsAt ?? 'no end').padEnd(24)}  ${printable(rootObjectId)}${words}`)
        }
      }),
    )
}

function removeCommand(): Command {
  return projectCommand('remove', 'remove a pin', 'Remove a pin.')
    .argument('<pin>', 'the id of the pin')
    .action((pinId: string, options: ConnectOptions, command: Command) =>
      withProject(options, command, async ({ project, signal }) => {
        await project.pins.remove(pinId, { signal })
        printNote('removed')
      }),
    )
}
