import { readFile } from 'node:fs/promises'
import { Command, type OutputConfiguration } from 'commander'
import { checkCommand } from './commands/check.ts'
import { collectCommand } from './commands/collect.ts'
import { compactCommand } from './commands/compact.ts'
import { completionCommand } from './commands/completion.ts'
import { copyCommand } from './commands/copy.ts'
import { hasCommand } from './commands/has.ts'
import { downloadCommand } from './commands/download.ts'
import { duCommand } from './commands/du.ts'
import { backupCommand } from './commands/backup.ts'
import { exportCommand } from './commands/export.ts'
import { importCommand } from './commands/import.ts'
import { mirrorCommand } from './commands/mirror.ts'
import { restoreCommand } from './commands/restore.ts'
import { EXIT_HELP } from './common/exit.ts'
import { getCommand } from './commands/get.ts'
import { keyCommand } from './commands/key.ts'
import { lsCommand } from './commands/ls.ts'
import { modelCommand } from './commands/model.ts'
import { pinCommand } from './commands/pin.ts'
import { projectCommand } from './commands/project.ts'
import { reindexCommand } from './commands/reindex.ts'
import { serveCommand } from './commands/serve.ts'
import { tokenCommand } from './commands/token.ts'
import { uploadCommand } from './commands/upload.ts'
import { versionCommand } from './commands/version.ts'

const EXAMPLES = `
Examples:
  stowage serve                                      serve the folder .stowage on http://127.0.0.1:8642
  stowage token --project demo --access write        print a token for it
  stowage project list                               what it holds
  stowage upload model.json --url ... --project demo send a model to a server
  stowage download $ROOT --url ... --project demo    fetch it again
  stowage check                                      read everything and compare it with its checksums

"stowage <command> --help" shows examples of each.
${EXIT_HELP}`

/**
 * All commands. What each needs beyond its options is loaded when it runs, so that help and tokens do not wait for a
 * database. Parsing rejects with a `CommanderError` when help was shown or the command line is invalid, after that
 * was printed.
 */
export async function createProgram(output: Pick<OutputConfiguration, 'writeOut' | 'writeErr'> = {}): Promise<Command> {
  const program = new Command('stowage')
    .description(
      'Serves object graphs over HTTP from a folder on this machine, and moves them to and from such a service.',
    )
    .version(await ownVersion())
    .addCommand(serveCommand())
    .addCommand(tokenCommand())
    .addCommand(keyCommand())
    .addCommand(projectCommand())
    .addCommand(checkCommand())
    .addCommand(reindexCommand())
    .addCommand(uploadCommand())
    .addCommand(downloadCommand())
    .addCommand(hasCommand())
    .addCommand(getCommand())
    .addCommand(lsCommand())
    .addCommand(modelCommand())
    .addCommand(versionCommand())
    .addCommand(pinCommand())
    .addCommand(duCommand())
    .addCommand(collectCommand())
    .addCommand(compactCommand())
    .addCommand(exportCommand())
    .addCommand(importCommand())
    .addCommand(mirrorCommand())
    .addCommand(copyCommand())
    .addCommand(backupCommand())
    .addCommand(restoreCommand())
    .addCommand(completionCommand())
    .addHelpText('after', EXAMPLES)
  return strict(program, output)
}

/** Subcommands do not inherit these settings when they are added ready-made. */
function strict(command: Command, output: OutputConfiguration): Command {
  command
    .exitOverride()
    .configureOutput({
      ...output,
      outputError: (text, write) => write(`stowage: ${oneLine(text)} (see "${pathOf(command)} --help")\n`),
    })
  for (const subcommand of command.commands) strict(subcommand, output)
  return command
}

function oneLine(commanderError: string): string {
  return commanderError
    .replace(/^error: /, '')
    .trim()
    .replace(/\s*[\r\n]+\s*/g, ' ')
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`
}

/** From the package's own `package.json`, which is nearer from the sources than from the compiled files. */
async function ownVersion(): Promise<string> {
  for (const path of ['../../package.json', '../../../package.json']) {
    try {
      return (JSON.parse(await readFile(new URL(path, import.meta.url), 'utf8')) as { version: string }).version
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }
  return 'unknown'
}
