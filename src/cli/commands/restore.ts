import { folderCredentials } from '../../credentials/folder-credentials.ts'
import { existsSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Command } from 'commander'
import { openAccess } from '../../access/open.ts'
import type { BackupContent } from '../../archive/index.ts'
import type { FolderKind } from '../../data-folder/data-folder.ts'
import { makeFolder, OWNER_ONLY, writeFileDurably } from '../../data-folder/durable-files.ts'
import { StowageError } from '../../errors.ts'
import { quotedPath } from '../../object/id.ts'
import { quietOption } from '../client/connect.ts'
import { lineProgress, NO_PROGRESS, objectsState, openProgress } from '../client/progress.ts'
import { EXIT_HELP, StoppedError } from '../common/exit.ts'
import { formatCount, printable } from '../common/format.ts'
import { dataOption, jsonOption } from '../common/options.ts'
import { printJson, printNote } from '../common/output.ts'
import { signalToStop } from '../common/signals.ts'
import { folderStorageOption, RESTORING_FILE, storageOf } from '../common/storage.ts'

const EXAMPLES = `
Examples:
  stowage restore /backup/stowage --data /var/lib/stowage
  stowage restore /backup/stowage --data ./copy --storage level

The data folder must be empty, or not exist. Run a stopped restore again to continue it; until it is done, no server
opens the folder. Tokens that were revoked after the backup are valid again.
${EXIT_HELP}`

interface RestoreOptions {
  readonly data: string
  readonly storage?: FolderKind
  readonly quiet?: boolean
  readonly json?: boolean
}

export function restoreCommand(): Command {
  return new Command('restore')
    .summary('restore a backup into a data folder')
    .description('Restore a backup of "stowage backup" into a data folder.')
    .argument('<folder>', 'the folder of the backup')
    .addOption(dataOption())
    .addOption(folderStorageOption())
    .addOption(quietOption())
    .addOption(jsonOption('print {"data", "projects", "takenAt"}'))
    .addHelpText('after', EXAMPLES)
    .action(restore)
}

async function restore(folder: string, options: RestoreOptions): Promise<void> {
  const { openBackup, restoreAccess } = await import('../../archive/index.ts')
  const { data } = options
  const content = await openBackup(folder)
  const { storeId, hasAccess, takenAt } = content
  const stop = new AbortController()
  void signalToStop().then((signal) => stop.abort(new StoppedError(signal)))
  await begin(data, takenAt)
  if (hasAccess) await restoreAccess(folder, data)
  await restoreInto(folder, storeId, options, stop.signal)
  await rm(join(data, RESTORING_FILE))
  tell(content, options)
}

function tell({ hasAccess, projects, takenAt }: BackupContent, { data, json }: RestoreOptions): void {
  if (json === true) return printJson({ data, projects: projects.length, takenAt })
  printNote(
    `restored ${formatCount(projects.length, 'project')} as of ${takenAt} into ${data}${hasAccess ? '' : ', without keys and tokens'}`,
  )
  for (const { project, missingSince } of projects)
    if (missingSince !== undefined)
      printNote(
        `the server did not list ${printable(project)} any more at ${missingSince}; it is restored as of before`,
      )
}

/** Marks the folder. Throws `conflict` for one that holds something else than the beginning of the same restore. */
async function begin(data: string, takenAt: string): Promise<void> {
  const isBegun = existsSync(join(data, RESTORING_FILE))
  if (!isBegun && existsSync(data) && (await readdir(data)).length > 0)
    throw new StowageError('conflict', `the folder ${quotedPath(data)} is not empty; name a new one with --data`)
  await makeFolder(data, OWNER_ONLY)
  await writeFileDurably(data, RESTORING_FILE, `${JSON.stringify({ takenAt })}\n`, { replace: true })
}

async function restoreInto(
  folder: string,
  storeId: string,
  { data, storage, quiet }: RestoreOptions,
  signal: AbortSignal,
): Promise<void> {
  const { archives, restoreProjects } = await import('../../archive/index.ts')
  const { automation } = await import('../../automation-server/index.ts')
  const { storedSecretKeys } = await import('../../automation-server/secret-keys.ts')
  const { createObjectService } = await import('../../service/service.ts')
  const secretKeys = storedSecretKeys(folderCredentials(data))
  const { backend } = await storageOf(data, storage, { mayBeRestoring: true })
  const { setStoreId } = await import('../../storage/store-id.ts')
  const service = createObjectService({
    backend,
    access: openAccess(),
    extensions: [automation({ secretKeys }), archives({ secretKeys })],
  })
  const progress = quiet === true ? NO_PROGRESS : process.stderr.isTTY ? await openProgress() : lineProgress()
  try {
    await backend.ready?.()
    await setStoreId(backend.records, storeId)
    await service.ready()
    const fetch = (url: string, init: RequestInit): Promise<Response> => service.fetch(new Request(url, init))
    await restoreProjects(
      folder,
      { url: 'http://folder.invalid', token: undefined, fetch },
      { signal, onProgress: (at) => progress.update(objectsState(at, at.project)) },
    )
  } finally {
    progress.stop()
    await service.close()
  }
}
