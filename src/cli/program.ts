import { readFile } from 'node:fs/promises'
import { Command, type OutputConfiguration } from 'commander'
import { EXIT_HELP } from './common/exit.ts'

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

/** In the order of the help. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import('./commands/serve.ts')).serveCommand(),
  token: async () => (await import('./commands/token.ts')).tokenCommand(),
  key: async () => (await import('./commands/key.ts')).keyCommand(),
  project: async () => (await import('./commands/project.ts')).projectCommand(),
  check: async () => (await import('./commands/check.ts')).checkCommand(),
  reindex: async () => (await import('./commands/reindex.ts')).reindexCommand(),
  upload: async () => (await import('./commands/upload.ts')).uploadCommand(),
  download: async () => (await import('./commands/download.ts')).downloadCommand(),
  has: async () => (await import('./commands/has.ts')).hasCommand(),
  get: async () => (await import('./commands/get.ts')).getCommand(),
  ls: async () => (await import('./commands/ls.ts')).lsCommand(),
  model: async () => (await import('./commands/model.ts')).modelCommand(),
  version: async () => (await import('./commands/version.ts')).versionCommand(),
  pin: async () => (await import('./commands/pin.ts')).pinCommand(),
  du: async () => (await import('./commands/du.ts')).duCommand(),
  collect: async () => (await import('./commands/collect.ts')).collectCommand(),
  compact: async () => (await import('./commands/compact.ts')).compactCommand(),
  export: async () => (await import('./commands/export.ts')).exportCommand(),
  import: async () => (await import('./commands/import.ts')).importCommand(),
  mirror: async () => (await import('./commands/mirror.ts')).mirrorCommand(),
  copy: async () => (await import('./commands/copy.ts')).copyCommand(),
  backup: async () => (await import('./commands/backup.ts')).backupCommand(),
  restore: async () => (await import('./commands/restore.ts')).restoreCommand(),
  completion: async () => (await import('./commands/completion.ts')).completionCommand(),
}
/** It prints what all of them are. */
const ABOUT_ALL = 'completion'

/**
 * All commands; only the one that the first argument names, if that is known, so that no command waits for the modules
 * of others. What each needs beyond its options is loaded when it runs, so that help and tokens do not wait for a
 * database. Parsing rejects with a `CommanderError` when help was shown or the command line is invalid, after that
 * was printed.
 */
export async function createProgram(
  output: Pick<OutputConfiguration, 'writeOut' | 'writeErr'> = {},
  firstArgument: string = '',
): Promise<Command> {
  const program = new Command('stowage')
    .description(
      'Serves object graphs over HTTP from a folder on this machine, and moves them to and from such a service.',
    )
    .version(await ownVersion())
    .addHelpText('after', EXAMPLES)
  const isOne = firstArgument !== ABOUT_ALL && Object.hasOwn(COMMANDS, firstArgument)
  const wanted = isOne ? [COMMANDS[firstArgument]] : Object.values(COMMANDS)
  for (const command of await Promise.all(wanted.map((load) => load()))) program.addCommand(command)
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
