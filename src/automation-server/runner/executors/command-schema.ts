import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { StowageError } from '../../../errors.ts'
import { type CommandOptions, resolveCommand } from './command.ts'
import { CommandRunner, type IsolationOptions } from './isolation/command-runner.ts'
import type { ProcessExit } from './isolation/process-group.ts'
import { OutputLog } from './output-log.ts'
import { withPrivateFolder } from './private-folder.ts'

const SCHEMA_FILE = 'schema.json'
const SCHEMA_BYTES_MAX = 1_048_576
const TIME_MS_MAX = 30_000
/** The exit code of node when nothing is left to do and a top-level await has not settled. */
const UNSETTLED = 13
/** `RangeError: it is too long`, `Error [ERR_MODULE_NOT_FOUND]: Cannot find ...`. */
const THROWN = /^(?:Uncaught )?(?:[A-Za-z_$][\w$.]*)?(?:Error|Exception)\b/
const THROWN_LINES_MAX = 4
const FRAME = /^\s+at /
/** A file and a line of it, but for node's own. */
const PLACE = /^(?!node:)\S.*:\d+$/

/**
 * Asks a function's command for the JSON Schema of its inputs: `generate_schema FILE`. What it holds is not checked here. Rejects with
 * `invalid_inputs_schema` when the command writes none within 30 seconds.
 */
export async function readCommandSchema(
  options: CommandOptions,
  isolation: IsolationOptions = {},
): Promise<Readonly<Record<string, unknown>>> {
  const resolved = resolveCommand(options)
  const { command, env, outputBytesMax } = resolved
  return withPrivateFolder(async (folder) => {
    const group = await new CommandRunner(isolation).start({
      ...resolved,
      folder,
      prepare: async (inside) => ['generate_schema', join(inside.folder, SCHEMA_FILE)],
    })
    const log = new OutputLog({
      outputBytesMax,
      secretTexts: Object.values(env),
      addLogs: async () => undefined,
      clock: Date,
    })
    const output = Promise.all([log.read(group.stdout, 'info'), log.read(group.stderr, 'warn')])
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      group.signal('SIGKILL')
    }, TIME_MS_MAX)
    let exit: ProcessExit
    try {
      exit = await group.exited
    } finally {
      clearTimeout(timer)
      await group.cleanUp(output)
      await log.finish()
    }
    if (exit.code !== 0) throw refused(command, wordsOnEnd(exit, isLate, log.lastLines))
    return readSchema(join(folder, SCHEMA_FILE), command)
  })
}

function wordsOnEnd({ code, signal }: ProcessExit, isLate: boolean, lastLines: string): string {
  const thrown = thrownWords(lastLines.split('\n'))
  if (thrown !== undefined) return `it threw ${thrown}`
  const [output, stuck] = [
    lastLines === '' ? ', and printed nothing' : `; the end of its output:\n${lastLines}`,
    code === UNSETTLED ? ', which is what node says of a top-level await that never settles' : '',
  ]
  if (isLate) return `it did not end within ${TIME_MS_MAX / 1_000} seconds, so it was killed${output}`
  return `it ended with ${code === null ? signal : `exit code ${code}${stuck}`}${output}`
}

/** An uncaught error, taken from node's output: the place and its text, the error, the first line of the stack. */
function thrownWords(lines: readonly string[]): string | undefined {
  const first = lines.findIndex((line) => THROWN.test(line))
  if (first < 0) return undefined
  const stack = lines.findIndex((line, at) => at > first && FRAME.test(line))
  const words = lines.slice(first, stack < 0 ? first + 1 : Math.min(stack, first + THROWN_LINES_MAX)).join('\n')
  const place = lines.slice(0, first).find((line) => PLACE.test(line))
  return place === undefined || words.includes(place) ? words : `${words} (${place})`
}

async function readSchema(path: string, command: readonly string[]): Promise<Readonly<Record<string, unknown>>> {
  const file = await open(path).catch(() => {
    throw refused(command, 'it wrote no file; the file of a function ends with a call of executeFunction')
  })
  try {
    const { size } = await file.stat()
    if (size > SCHEMA_BYTES_MAX)
      throw refused(command, `the file has ${size} bytes, and the limit is ${SCHEMA_BYTES_MAX}`)
    return parsed(await file.readFile('utf8'), command)
  } finally {
    await file.close()
  }
}

function parsed(text: string, command: readonly string[]): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Readonly<Record<string, unknown>>
  } catch {
    throw refused(command, 'the file is not JSON')
  }
  throw refused(command, 'the file holds no JSON object')
}

function refused(command: readonly string[], why: string): StowageError {
  return new StowageError(
    'invalid_inputs_schema',
    `the command ${JSON.stringify(command.join(' ').slice(0, 200))} was asked for the schema of its inputs with generate_schema FILE: ${why}`,
  )
}
