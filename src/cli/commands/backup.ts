import { folderCredentials } from '../../credentials/folder-credentials.ts'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Command, Option } from 'commander'
import type { BackupContent } from '../../archive/index.ts'
import type { ClientOptions } from '../../client/index.ts'
import { hasCode } from '../../data-folder/data-folder-error.ts'
import { withAdvice, checkedUrl, quietOption, retryForOption, retryOf, tokenOf, withFolder } from '../client/connect.ts'
import { withReadingToken } from '../client/own-token.ts'
import { lineProgress, NO_PROGRESS, openProgress } from '../client/progress.ts'
import { EXIT_HELP, StoppedError } from '../common/exit.ts'
import { folderName, jsonOption } from '../common/options.ts'
import { printJson, printNote } from '../common/output.ts'
import { signalToStop } from '../common/signals.ts'
import { formatBytes, formatCount, printable } from '../common/format.ts'

const EXAMPLES = `
Examples:
  stowage backup /backup/stowage --data /var/lib/stowage --url http://127.0.0.1:8642    while the server uses the folder
  stowage backup /backup/stowage --data /var/lib/stowage                                from a folder that no server has open
  stowage backup /backup/stowage --url https://models.example --token-file token.txt    from elsewhere, without keys and tokens

The first backup reads everything, later ones only new data. With --data, the backup contains the keys, tokens and
secrets of the folder: keep it where only administrators can read it. The server keeps running. The backup contains
everything that was acknowledged before it began. To continue a stopped backup, run it again. A folder is the backup of
one storage: that of another server is refused. Archives of projects that the server does not list stay until --prune.
"stowage restore" turns a backup into a data folder.
${EXIT_HELP}`

interface BackupOptions {
  readonly data?: string
  readonly url?: string
  readonly token?: string
  readonly tokenFile?: string
  readonly full?: boolean
  readonly prune?: boolean
  readonly retryFor: number
  readonly quiet?: boolean
  readonly json?: boolean
}

export function backupCommand(): Command {
  return new Command('backup')
    .summary('back up a running server')
    .description('Back up a running server into a folder.')
    .argument('<folder>', 'the folder of the backup; it is created if it does not exist', folderName)
    .addOption(
      new Option('--data <folder>', "the server's data folder, on this machine")
        .env('STOWAGE_DATA')
        .argParser(folderName),
    )
    .addOption(new Option('--url <url>', 'the address of the server').env('STOWAGE_URL'))
    .addOption(new Option('--token <token>', 'a token for every project; with --data one is made').env('STOWAGE_TOKEN'))
    .addOption(new Option('--token-file <file>', 'a file with the token'))
    .addOption(new Option('--full', 'read everything again, and replace the existing backup'))
    .addOption(
      new Option('--prune', 'remove archives of projects that the server does not list, and replaced archives'),
    )
    .addOption(retryForOption())
    .addOption(quietOption())
    .addOption(jsonOption('print the contents of the backup'))
    .addHelpText('after', EXAMPLES)
    .action(backup)
}

async function backup(folder: string, options: BackupOptions, command: Command): Promise<void> {
  const { data, url } = options
  if (data === undefined && url === undefined)
    return command.error('--data or --url is missing: name the data folder, the address of the server, or both')
  if (data !== undefined && !existsSync(data)) return command.error(`there is no folder ${JSON.stringify(data)}`)
  const { backupServer } = await import('../../archive/index.ts')
  const stop = new AbortController()
  void signalToStop().then((signal) => stop.abort(new StoppedError(signal)))
  let progress = options.quiet === true ? NO_PROGRESS : lineProgress()
  const run = async (server: ClientOptions): Promise<void> => {
    if (options.quiet !== true) progress = await openProgress()
    const content = await backupServer(server, folder, {
      signal: stop.signal,
      isFull: options.full === true,
      prunes: options.prune === true,
      ...(data === undefined ? {} : { accessFolder: join(data, 'access') }),
      onProgress: ({ project, objects, bytes }) =>
        progress.update({
          done: bytes,
          total: undefined,
          text: `${project}: ${formatCount(objects, 'new object')}, ${formatBytes(bytes)}`,
        }),
    })
    progress.stop()
    tell(content, folder, options)
  }
  try {
    if (url === undefined) await withFolder(data as string, run)
    else {
      const retry = retryOf(options, url, (wait) => progress.wait(wait))
      await withToken(options, (token) => run({ url: checkedUrl(url), token, retry }))
    }
  } catch (error) {
    stop.signal.throwIfAborted()
    if (url === undefined && hasCode(error, 'FOLDER_HELD'))
      throw new Error('a server has the data folder open; name its address with --url', { cause: error })
    throw withAdvice(error, options)
  } finally {
    progress.stop()
  }
}

async function withToken(options: BackupOptions, use: (token: ClientOptions['token']) => Promise<void>): Promise<void> {
  const given = tokenOf(options)
  const { data } = options
  if (given !== undefined || data === undefined) return use(given)
  await withReadingToken(folderCredentials(data), 'stowage backup', use)
}

function tell(content: BackupContent, folder: string, { json }: BackupOptions): void {
  if (json === true) return printJson(content)
  const { hasAccess, projects, replaced } = content
  const keys = hasAccess ? ', with keys and tokens' : ', without keys and tokens'
  const missing = projects.filter(({ missingSince }) => missingSince !== undefined)
  printNote(`${formatCount(projects.length - missing.length, 'project')} backed up to ${folder}${keys}`)
  tellKept('the server does not list these projects', missing)
  tellKept('the server does not have the history of earlier archives of these projects', replaced)
}

/** The operator decides whether they may go: the archives may be all that is left of a project. */
function tellKept(why: string, kept: readonly { readonly project: string }[]): void {
  if (kept.length === 0) return
  const projects = [...new Set(kept.map(({ project }) => printable(project)))].join(', ')
  printNote(`${why}; their archives are kept, and --prune removes them: ${projects}`)
}
