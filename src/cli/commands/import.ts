import { existsSync } from 'node:fs'
import { Command, Option } from 'commander'
import { StowageError } from '../../errors.ts'
import { quotedPath } from '../../object/id.ts'
import { addConnectOptions, CONNECT_HELP, type ConnectOptions, withProject } from '../client/connect.ts'
import { STDIN } from '../client/object-file.ts'
import { objectsState } from '../client/progress.ts'
import { EXIT, FindingsError, TRANSFER_EXIT_HELP } from '../common/exit.ts'
import { fileText, jsonOption } from '../common/options.ts'
import { printJson, printNote } from '../common/output.ts'
import { formatCount } from '../common/format.ts'

const EXAMPLES = `
Examples:
  stowage import demo.tar --url http://127.0.0.1:8642 --project demo --token-file token.txt
  stowage import monday.tar tuesday.tar --project demo      a full archive and the incremental ones after it
  stowage import demo.tar --check                           compare the file with its checksums, and send nothing
  ssh backup cat demo.tar | stowage import - --project demo from standard input

Files are verified before anything is sent. Objects come first, then pins, models, versions, automations and runs under
their own ids. Run a stopped import again to continue it: it sends only missing data. It adds and updates, and deletes
nothing. Imported versions start no automation. Standard input is kept in a temporary file until it is verified; TMPDIR
names the folder for it.
${CONNECT_HELP}
${TRANSFER_EXIT_HELP}`

interface ImportOptions extends ConnectOptions {
  readonly check?: boolean
  readonly secretsKey?: string
}

export function importCommand(): Command {
  return addConnectOptions(
    new Command('import')
      .summary('import an exported project')
      .description('Import an exported project into a server, or into a data folder.'),
  )
    .argument('<file...>', 'the archive, and the incremental ones after it; - for standard input')
    .addOption(new Option('--check', 'only compare the files with their checksums'))
    .addOption(
      new Option(
        '--secrets-key <file>',
        'the private key (PEM) of secrets that were exported with --seal-secrets-for; without it they are left out',
      ).argParser(fileText),
    )
    .addOption(jsonOption('print what was imported'))
    .addHelpText('after', EXAMPLES)
    .action(importProject)
}

async function importProject(files: readonly string[], options: ImportOptions, command: Command): Promise<void> {
  if (files.filter((file) => file === STDIN).length > 1)
    return command.error('standard input (-) holds one archive; name the others as files')
  const absent = files.find((file) => file !== STDIN && !existsSync(file))
  if (absent !== undefined) throw new StowageError('invalid_request', `there is no file ${quotedPath(absent)}`)
  const { importFiles, verifyFiles } = await import('../../archive/index.ts')
  const sources = files.map((file) => (file === STDIN ? process.stdin : file))
  if (options.check === true) {
    const manifests = await verifyFiles(sources)
    if (options.json === true)
      for (const [at, { objects, sha256 }] of manifests.entries()) printJson({ file: files[at], objects, sha256 })
    else printNote(`${formatCount(files.length, 'archive')} verified, no damage`)
    return
  }
  await withProject(options, command, async ({ remote, signal, openProgress }) => {
    const progress = await openProgress()
    const result = await importFiles(remote, sources, {
      signal,
      ...(options.secretsKey === undefined ? {} : { secretsKey: options.secretsKey }),
      onProgress: (at) => progress.update(objectsState(at)),
    })
    progress.stop()
    const { objects, sent, differing, records, disabledAutomations } = result
    if (options.json === true) printJson(result)
    else
      printNote(
        `imported ${formatCount(objects, 'object')}, ${sent.toLocaleString('en-US')} of them new; of pins, models, versions, automations and runs ${records.created} new, ${records.updated} changed`,
      )
    if (disabledAutomations.length > 0)
      printNote(
        `${formatCount(disabledAutomations.length, 'automation')} disabled, because secrets were left out. Set the secrets and choose "Active" on the page of each, or send both with PATCH api/v1/projects/${remote.projectId}/automations/<id>: ${disabledAutomations.join(', ')}`,
      )
    if (differing === 0) return
    printNote(
      `${formatCount(differing, 'object')} differ from the objects of the project with the same id; those of the project stay`,
    )
    throw new FindingsError(EXIT.failure)
  })
}
