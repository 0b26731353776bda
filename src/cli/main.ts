import { CommanderError } from 'commander'
import { describeFailure, EXIT, exitCodeOf, FindingsError, StoppedError } from './common/exit.ts'
import { printNote } from './common/output.ts'
import { createProgram } from './program.ts'

endQuietlyWithReader()
process.exitCode = await run(process.argv.slice(2))

async function run(argv: readonly string[]): Promise<number> {
  try {
    await (await createProgram({}, argv[0])).parseAsync(argv, { from: 'user' })
    return EXIT.ok
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
    if (!(error instanceof FindingsError)) printNote(describeFailure(error))
    // Output that a reader has not taken yet would hold the process for as long as that reader likes.
    if (error instanceof StoppedError) process.exit(error.exitCode)
    return exitCodeOf(error)
  }
}

/** `stowage token list | head -1` is not a failure. A server outlives the reader of its log. */
function endQuietlyWithReader(): void {
  process.stdout.on('error', () => process.exit(EXIT.failure))
  process.stderr.on('error', () => undefined)
}
