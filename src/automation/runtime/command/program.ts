import { writeFile } from 'node:fs/promises'
import { Command, CommanderError, Option } from 'commander'
import type { AutomationFunction } from '../../author/function.ts'
import { InputsError } from '../../author/inputs/errors.ts'
import { describeThrown } from '../run/texts.ts'
import { httpRunBackend } from '../http/http-run-backend.ts'
import type { RunOutcome } from '../run/run-options.ts'
import { isLocal, localRun, type LocalRunArguments } from './local-run.ts'
import { readInputsFile, readRunFile } from './run-file.ts'
import { isCaptured, type ProcessRun, type ProcessTimes, runInThisProcess } from './run-process.ts'

/** Runners only look at 0 and 1. */
const EXIT: { readonly ok: 0; readonly exception: 1; readonly usage: 2; readonly failed: 3; readonly canceled: 4 } = {
  ok: 0,
  exception: 1,
  usage: 2,
  failed: 3,
  canceled: 4,
}
/** How long timers and handles that a function leaves open may keep the process alive. */
const EXIT_MS = 1_000

/**
 * The command of a function's file. Sets the exit code of the process, and ends the process if it does not end on its
 * own.
 */
export async function runProgram(
  automationFunction: AutomationFunction,
  argv: readonly string[],
  times: ProcessTimes,
): Promise<void> {
  process.exitCode = await exitCodeOf(automationFunction, argv, times)
  setTimeout(() => process.exit(), EXIT_MS).unref()
}

async function exitCodeOf(
  automationFunction: AutomationFunction,
  argv: readonly string[],
  times: ProcessTimes,
): Promise<number> {
  let code: number = EXIT.ok
  if (argv.length === 0) {
    program(automationFunction, times, () => undefined).outputHelp({ error: true })
    return EXIT.usage
  }
  try {
    await program(automationFunction, times, (exitCode) => (code = exitCode)).parseAsync(argv, { from: 'user' })
    return code
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
    print(describeThrown(error))
    return error instanceof InputsError ? EXIT.exception : EXIT.usage
  }
}

function program(
  automationFunction: AutomationFunction,
  times: ProcessTimes,
  setExitCode: (code: number) => void,
): Command {
  const command = new Command(automationFunction.name).description(automationFunction.description).exitOverride()
  command.addHelpText(
    'after',
    `
Exit codes: ${EXIT.ok} the run succeeded, or a server has taken that it failed; ${EXIT.exception} it was an exception, or inputs are not valid;
${EXIT.usage} nothing could be done; ${EXIT.failed} it failed, on your own machine; ${EXIT.canceled} it was canceled, or the server took no reports.`,
  )
  command
    .command('run', { isDefault: true })
    .argument('[file]', 'the run file: a token, inputs, and the data of the run')
    .description(
      'run the function once: as a server asks for it, or for yourself with --local, --report or without a file',
    )
    .option('--local', 'report to the terminal; the token is yours')
    .addOption(
      new Option('--report', 'report to the server, as a run of an automation; the token is yours').conflicts('local'),
    )
    .option('--automation <id>', 'with --report: the automation; its inputs count, unless --inputs gives others')
    .option('--url <url>', 'the server (default: STOWAGE_URL, else http://127.0.0.1:8642)')
    .option('--project <id>', 'the project of the model')
    .option('--model <id>', 'the model')
    .option('--version <id>', 'the version (default: the latest)')
    .option('--inputs <file>', 'a JSON file of inputs')
    .option('--files <folder>', 'the folder for stored files (default: function-files)')
    .addHelpText('after', '\nWithout a run file, or with --local or --report, your token is taken from STOWAGE_TOKEN.')
    .action(async (path: string | undefined, options: LocalRunArguments) => {
      const isOwn = isLocal(path, options)
      const read = isOwn ? () => localRun(path, options, print) : () => serverRun(path ?? '')
      const { status, message, isDelivered } = await runInThisProcess(automationFunction, read, times)
      if (!(isDelivered && isCaptured())) print(`${status}: ${message}`)
      if (status === 'canceled' && !isOwn && !isCaptured())
        print('to run the function on your own machine with your own token, add --local')
      setExitCode(exitCodeFor(status, isOwn))
    })
  command
    .command('generate-schema')
    .alias('generate_schema')
    .argument('<file>', 'where it goes')
    .description('write the JSON Schema of the inputs')
    .action(async (path: string) => {
      const { name, description, inputs } = automationFunction
      const schema = inputs.toJSONSchema()
      /* Whoever registers the file as a command knows nothing else of it. */
      const words = {
        title: schema.title ?? name,
        ...(description === '' ? {} : { description: schema.description ?? description }),
      }
      await writeFile(path, `${JSON.stringify({ ...schema, ...words }, undefined, 2)}\n`)
    })
  command
    .command('validate')
    .argument('[file]', 'a run file, or a file of inputs')
    .description('check the declaration of the inputs, and the inputs in a file')
    .action(async (path?: string) => {
      if (path !== undefined) await automationFunction.inputs.parse(await readInputsFile(path))
      print(
        path === undefined
          ? `the inputs are declared well: ${automationFunction.inputs.description.fields.length} fields`
          : 'the inputs are valid',
      )
    })
  return command
}

async function serverRun(path: string): Promise<ProcessRun> {
  const runFile = await readRunFile(path)
  return { runFile, backend: httpRunBackend(runFile) }
}

/**
 * A runner learns of a failure by its report; people and scripts that run a function themselves have the exit code
 * alone.
 */
function exitCodeFor(status: RunOutcome['status'], isOwn: boolean): number {
  if (status === 'exception') return EXIT.exception
  if (status === 'canceled') return EXIT.canceled
  return status === 'failed' && isOwn ? EXIT.failed : EXIT.ok
}

function print(line: string): void {
  process.stderr.write(`${line}\n`)
}
