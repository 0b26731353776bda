import { existsSync } from 'node:fs'
import { Command, Option } from 'commander'
import type { ExportBase, ExportFileOptions, ExportResult } from '../../archive/index.ts'
import { StowageError } from '../../errors.ts'
import { quotedPath } from '../../object/id.ts'
import { addConnectOptions, CONNECT_HELP, type ConnectOptions, withProject } from '../client/connect.ts'
import { STDOUT, writeToStdout } from '../client/sink.ts'
import { TRANSFER_EXIT_HELP } from '../common/exit.ts'
import { fileText, jsonOption } from '../common/options.ts'
import { printJson, printNote } from '../common/output.ts'
import { formatBytes, formatCount } from '../common/format.ts'

const EXAMPLES = `
Examples:
  stowage export demo -o demo.tar --url http://127.0.0.1:8642 --token-file token.txt
  stowage export demo -o tuesday.tar --since monday.tar     only new data since monday.tar
  stowage export demo -o demo.tar --data /var/lib/stowage   from a folder that no server has open
  stowage export demo -o - | ssh backup 'cat > demo.tar'    to standard output

The file contains the whole project: objects, models, versions, automations, and ended runs with their annotations, logs
and files. It appears when it is complete. Run a stopped export again to continue it; one to standard output starts
again. Deleted models and versions are omitted, and so are secrets without one of the two options for them.
${CONNECT_HELP}
${TRANSFER_EXIT_HELP}`

interface ExportOptions extends ConnectOptions {
  readonly output: string
  readonly since?: string
  readonly sealedSecrets?: boolean
  readonly sealSecretsFor?: string
}

export function exportCommand(): Command {
  return addConnectOptions(
    new Command('export')
      .summary('save a project as one file')
      .description('Save a whole project as one file for "stowage import".'),
  )
    .argument('[project]', 'the project; --project by default')
    .requiredOption('-o, --output <file>', 'the file to write, or - for standard output')
    .addOption(new Option('--since <archive>', 'only data after this archive, a file or the cursor of an export'))
    .addOption(
      new Option(
        '--sealed-secrets',
        'with the secrets of automations, sealed: only a server with the same key opens them; needs the right to write',
      ),
    )
    .addOption(
      new Option(
        '--seal-secrets-for <file>',
        'with the secrets, sealed for this public key (PEM); the server must allow the key (serve --secret-recipient)',
      )
        .argParser(fileText)
        .conflicts('sealedSecrets'),
    )
    .addOption(jsonOption('print {"file", "objects", "sha256", "cursor"}'))
    .addHelpText('after', EXAMPLES)
    .action(exportProject)
}

async function exportProject(project: string | undefined, options: ExportOptions, command: Command): Promise<void> {
  const { output, since, sealedSecrets = false, sealSecretsFor } = options
  if (output === STDOUT && options.json === true)
    return command.error('--json needs a file as --output: standard output holds the archive otherwise')
  if (output === STDOUT && process.stdout.isTTY)
    return command.error('an archive is not text for a terminal: name a file, or redirect standard output')
  const { exportInto, exportToFile } = await import('../../archive/index.ts')
  await withProject(named(options, project), command, async ({ remote, signal, openProgress }) => {
    const base = since === undefined ? undefined : await baseOf(since)
    const progress = await openProgress()
    const exportTo = (exportOptions: ExportFileOptions): Promise<ExportResult> =>
      output === STDOUT
        ? exportInto(remote, (bytes) => writeToStdout(bytes, signal), exportOptions)
        : exportToFile(remote, output, exportOptions)
    const { manifest, cursor } = await exportTo({
      signal,
      hasSealedSecrets: sealedSecrets,
      ...(sealSecretsFor === undefined ? {} : { sealSecretsFor }),
      ...(base === undefined ? {} : { since: base }),
      onProgress: ({ bytes, objects }) =>
        progress.update({
          done: bytes,
          total: undefined,
          text: `${formatCount(objects, 'object')}, ${formatBytes(bytes)}`,
        }),
    })
    progress.stop()
    const { objects, sha256 } = manifest
    if (options.json === true) printJson({ file: output, objects, sha256, cursor })
    else
      printNote(`exported ${formatCount(objects, 'object')} to ${placeOf(output)} (SHA-256 of the manifest: ${sha256})`)
  })
}

function placeOf(output: string): string {
  return output === STDOUT ? 'standard output' : output
}

async function baseOf(since: string): Promise<ExportBase> {
  const { baseOfCursor, baseOfFile } = await import('../../archive/index.ts')
  if (existsSync(since)) return baseOfFile(since)
  try {
    return baseOfCursor(since)
  } catch (cause) {
    throw new StowageError(
      'invalid_request',
      `there is no archive ${quotedPath(since)}, and ${(cause as Error).message}`,
      { cause },
    )
  }
}

/** The project that the argument names goes before the option. */
export function named<O extends ConnectOptions>(options: O, project: string | undefined): O {
  return project === undefined ? options : { ...options, project }
}
