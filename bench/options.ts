import { parseArgs } from 'node:util'

/** Exit code of a command that was called with wrong options, as in `src/cli`. */
const USAGE_EXIT_CODE = 2

/** What `read` reads from the command line. A wrong option ends the process with one line and the usage. */
export function orUsage<T>(usage: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    console.error(`${message.replaceAll('\n', ' ')}\nusage: ${usage}`)
    return process.exit(USAGE_EXIT_CODE)
  }
}

type Option =
  | { readonly type: 'string'; readonly default?: string }
  | { readonly type: 'boolean'; readonly default: false }
type Value<O extends Option> = O extends { readonly type: 'boolean' }
  ? boolean
  : O extends { readonly default: string }
    ? string
    : string | undefined

/** The options of a command; `--help` prints its usage and ends the process. */
export function readOptions<const O extends Readonly<Record<string, Option>>>(
  usage: string,
  options: O,
): { readonly [K in keyof O]: Value<O[K]> } {
  const withHelp: Record<string, Option> = { ...options, help: { type: 'boolean', default: false } }
  const { values } = orUsage(usage, () => parseArgs({ options: withHelp }))
  if (values.help === true) {
    console.log(`usage: ${usage}`)
    process.exit()
  }
  return values as { readonly [K in keyof O]: Value<O[K]> }
}

/** Throws `RangeError` if `text` is not a whole number from `min` on. */
export function countOf(option: string, text: string, min = 1): number {
  const value = Number(text)
  if (text.trim() === '' || !Number.isSafeInteger(value) || value < min)
    throw new RangeError(`--${option} is "${text}"; it must be a whole number of ${min} or more`)
  return value
}
