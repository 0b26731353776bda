import { writeFile } from 'node:fs/promises'
import { Command, CommanderError } from 'commander'
import type { AutomationFunction } from '../function.ts'
import { InputsError } from '../inputs/errors.ts'
import { describeThrown } from '../run/texts.ts'
import { readInputsFile } from './run-file.ts'
import { isCaptured, type ProcessTimes, runInThisProcess } from './run-process.ts'

const EXIT: { readonly ok: 0; readonly exception: 1; readonly usage: 2 } = { ok: 0, exception: 1, usage: 2 }
/** What a function leaves open may end by itself for so long. */
const EXIT_MS = 1_000

/** The command that a function's file is. Sets the exit code of the process, and ends it when it does not end by itself. */
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
    `\nExit codes: ${EXIT.ok} the run succeeded, failed or was canceled; ${EXIT.exception} it was an exception, or inputs are not valid; ${EXIT.usage} nothing could be done.`,
  )
  command
    .command('run', { isDefault: true })
    .argument('<file>', 'the run file: a token, inputs, and what the run is about')
    .description('run the function once')
    .action(async (path: string) => {
      const { status, message, isDelivered } = await runInThisProcess(automationFunction, path, times)
      if (!(isDelivered && isCaptured())) print(`${status}: ${message}`)
      setExitCode(status === 'exception' ? EXIT.exception : EXIT.ok)
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

function print(line: string): void {
  process.stderr.write(`${line}\n`)
}
