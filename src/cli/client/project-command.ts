import { Command } from 'commander'
import { addConnectOptions, CONNECT_HELP } from './connect.ts'

/** A command on a project of a server, or of a data folder. `help` follows its options. */
export function projectCommand(
  name: string,
  summary: string,
  description: string,
  help: string = CONNECT_HELP,
): Command {
  return addConnectOptions(new Command(name).summary(summary).description(description)).addHelpText('after', help)
}
