import { StowageError } from '../errors.ts'

/** What scripts can rely on. */
export const EXIT: { readonly ok: 0; readonly failure: 1; readonly usage: 2 } = { ok: 0, failure: 1, usage: 2 }

export const EXIT_HELP: string = `
Exit codes: ${EXIT.ok} all is well, ${EXIT.failure} a failure or findings, ${EXIT.usage} a command line that makes no sense.`

/** A command that ran and has bad news, all of it printed already. */
export class FindingsError extends Error {
  override readonly name = 'FindingsError'
}

/** One line about what went wrong, for people. */
export function describeFailure(error: unknown): string {
  const causes: string[] = []
  for (let at: unknown = error; at !== undefined && causes.length < 4; at = at instanceof Error ? at.cause : undefined) {
    const message = at instanceof Error ? at.message : 'something that is not an error was thrown'
    if (!causes.includes(message)) causes.push(message)
  }
  return causes.join(': ').replace(/\s*[\r\n]+\s*/g, ' ')
}

/** What the exit code of a command that threw is. */
export function exitCodeOf(error: unknown): number {
  const isUsage = error instanceof StowageError && (error.code === 'invalid_request' || error.code === 'invalid_id')
  return isUsage ? EXIT.usage : EXIT.failure
}
