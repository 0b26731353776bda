import { readFile } from 'node:fs/promises'
import { Command, CommanderError } from 'commander'
import { describeFailure, EXIT, EXIT_HELP, exitCodeOf, FindingsError } from './exit.ts'
import { printNote } from './output.ts'
import { tokenCommand } from './token.ts'

const EXAMPLES = `
Examples:
  stowage serve                                      serve the folder .stowage on http://127.0.0.1:8642
  stowage token --project demo --access write        print a token for it
  stowage project list                               what it holds
  stowage check                                      read everything and compare it with its checksums

"stowage <command> --help" shows examples of each.
${EXIT_HELP}`

process.exitCode = await run(process.argv.slice(2))

async function run(argv: readonly string[]): Promise<number> {
  try {
    await (await createProgram()).parseAsync(argv, { from: 'user' })
    return EXIT.ok
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
    if (!(error instanceof FindingsError)) printNote(describeFailure(error))
    return exitCodeOf(error)
  }
}

async function createProgram(): Promise<Command> {
  const program = new Command('stowage').description('Serves object graphs over HTTP, from a folder on this machine.').version(await ownVersion())
    .addCommand(tokenCommand())
    .addHelpText('after', EXAMPLES)
  return strict(program)
}

/** Subcommands do not inherit these settings when they are added ready-made. */
function strict(command: Command): Command {
  command.exitOverride().showSuggestionAfterError(true).configureOutput({
    outputError: (text, write) => write(`stowage: ${oneLine(text)} (see "${pathOf(command)} --help")\n`),
  })
  command.commands.forEach(strict)
  return command
}

function oneLine(commanderError: string): string {
  return commanderError.replace(/^error: /, '').trim().replace(/\s*[\r\n]+\s*/g, ' ')
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
