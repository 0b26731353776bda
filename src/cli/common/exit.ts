import { constants } from 'node:os'
import { StowageError } from '../../errors.ts'
import { printable } from './format.ts'

/** Exit codes that scripts can rely on. */
export const EXIT: { readonly ok: 0; readonly failure: 1; readonly usage: 2; readonly missing: 3; readonly damage: 4 } =
  { ok: 0, failure: 1, usage: 2, missing: 3, damage: 4 }

export const EXIT_HELP: string = `
Exit codes: ${EXIT.ok} success, ${EXIT.failure} failure, ${EXIT.usage} invalid command line.`

/** For the commands that look for damage: a script can tell damage from a command that could not run. */
export const DAMAGE_EXIT_HELP: string = `
Exit codes: ${EXIT.ok} no damage, ${EXIT.failure} could not run to its end, ${EXIT.usage} invalid command line, ${EXIT.damage} ran to its end and found damage.`

/** For the commands that merge and collect what a server stores. */
export const UPKEEP_EXIT_HELP: string = `
Exit codes: ${EXIT.ok} success, ${EXIT.failure} failure, ${EXIT.usage} invalid command line, ${EXIT.damage} done as far as possible, and found damage, 130 stopped by Ctrl-C.`

/** The same, where objects can be chosen. */
export const COLLECT_EXIT_HELP: string = `
Exit codes: ${EXIT.ok} success, ${EXIT.failure} failure, ${EXIT.usage} invalid command line, ${EXIT.missing} done, but chosen objects are not held, ${EXIT.damage} done as far as possible, and found damage, 130 stopped by Ctrl-C.`

/** For the commands that speak to a server. */
export const TRANSFER_EXIT_HELP: string = `
Exit codes: ${EXIT.ok} success, ${EXIT.failure} failure, ${EXIT.usage} invalid command line, ${EXIT.missing} done, but objects are missing, 130 stopped by Ctrl-C.`

/** A command that ran and has bad news, all of it printed already. */
export class FindingsError extends Error {
  override readonly name = 'FindingsError'
  readonly exitCode: number

  constructor(exitCode: number) {
    super('there are findings')
    this.exitCode = exitCode
  }
}

/** A command that a signal has stopped. */
export class StoppedError extends Error {
  override readonly name = 'StoppedError'
  readonly exitCode: number

  constructor(signal: NodeJS.Signals) {
    super(`stopped by ${signal}; run the command again to continue`)
    this.exitCode = 128 + constants.signals[signal]
  }
}

/** One line about the failure, for people. */
export function describeFailure(error: unknown): string {
  const causes: string[] = []
  for (
    let at: unknown = error;
    at !== undefined && causes.length < 4;
    at = at instanceof Error ? at.cause : undefined
  ) {
    const message = at instanceof Error ? at.message : 'something that is not an error was thrown'
    // What an outer error already says is not said again.
    if (!causes.some((outer) => outer.includes(message))) causes.push(message)
  }
  return printable(causes.join(': ').replace(/\s*[\r\n]+\s*/g, ' '))
}

/** The exit code of a command that threw. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof FindingsError || error instanceof StoppedError) return error.exitCode
  const isUsage = error instanceof StowageError && (error.code === 'invalid_request' || error.code === 'invalid_id')
  return isUsage ? EXIT.usage : EXIT.failure
}
