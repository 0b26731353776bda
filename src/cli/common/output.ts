/** One line of a command's result, on stdout. */
export function printLine(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** One line of a command's result for scripts (`--json`): each line is a JSON value. */
export function printJson(value: unknown): void {
  printLine(JSON.stringify(value))
}

/** One line for programs, beside the result, on stderr. */
export function printError(line: string): void {
  process.stderr.write(`${line}\n`)
}

/** One line for people, beside the result, on stderr. */
export function printNote(text: string): void {
  process.stderr.write(`stowage: ${text}\n`)
}
