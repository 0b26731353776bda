import { resolve } from 'node:path'
import { Command, Option } from 'commander'
import type { MirrorProgress } from '../../archive/mirror.ts'
import type { FolderKind } from '../../data-folder/data-folder.ts'
import { hasCode } from '../../data-folder/data-folder-error.ts'
import { quietOption } from '../client/connect.ts'
import { type CopiedStorage, copyStorage, type CopyStorageOptions } from '../client/copy-storage.ts'
import { lineProgress, NO_PROGRESS, objectsState, openProgress, type TransferState } from '../client/progress.ts'
import { EXIT_HELP, StoppedError } from '../common/exit.ts'
import { formatCount, formatDuration, printable } from '../common/format.ts'
import { durationSecondsOrNone, jsonOption } from '../common/options.ts'
import { printJson, printLine, printNote } from '../common/output.ts'
import {
  addSidePlace,
  credentialsOf,
  isShared,
  keepsCredentials,
  placeText,
  type StoragePlace,
  type StorageSide,
} from '../common/shared-storage.ts'
import { signalToStop } from '../common/signals.ts'
import { folderStorageOption, servedStorage, withStorage } from '../common/storage.ts'

const EXAMPLES = `
Examples:
  stowage copy --from /var/lib/stowage --to-records postgres://... --to-blobs s3://models/stowage?endpoint=...
  stowage copy --from-records postgres://... --from-blobs s3://... --to ./folder
  stowage copy --from ./folder --to ./other --storage level

Everything is copied under its own ids: projects with their objects, pins, models, versions, automations with their
secrets, ended runs with logs and files, and the keys and tokens, so that every token works on. Deleted models and
versions, and runs that have not ended, are left out. In the end both sides are read and compared. The target must be
new or empty. Stop the server of a folder first; servers that share the source refuse writes meanwhile. Run a stopped
copy again to continue it: until it has finished, no server opens the target. STOWAGE_FROM_RECORDS, STOWAGE_TO_RECORDS
and so on replace the options of addresses.
${EXIT_HELP}`

/** As long as a call of a server to its records may take. */
const SOURCE_DRAIN_SECONDS = 60
/** A database that fails over is back by then. */
const RETRY_MS = 120_000

interface CopyOptions {
  readonly from?: string
  readonly fromRecords?: string
  readonly fromBlobs?: string
  readonly fromSealingKeyFile?: string
  readonly to?: string
  readonly toRecords?: string
  readonly toBlobs?: string
  readonly toSealingKeyFile?: string
  readonly storage?: FolderKind
  /** In seconds. */
  readonly drain: number
  readonly quiet?: boolean
  readonly json?: boolean
}

export function copyCommand(): Command {
  const command = new Command('copy')
    .summary('copy a whole storage, such as a folder to a cluster')
    .description('Copy a whole storage to a new one: from a folder to a cluster, back, or to another folder.')
  addSidePlace(command, 'from', 'the data folder to copy; no server may have it open')
  addSidePlace(command, 'to', 'the new data folder')
  return command
    .addOption(folderStorageOption())
    .addOption(
      new Option('--drain <duration>', 'how long calls of servers to the shared records of the source may still take')
        .argParser(durationSecondsOrNone)
        .default(SOURCE_DRAIN_SECONDS, '60s'),
    )
    .addOption(quietOption())
    .addOption(jsonOption('print {"projects": [...], "tokens"} with counts and digests'))
    .addHelpText('after', EXAMPLES)
    .action(copy)
}

async function copy(options: CopyOptions, command: Command): Promise<void> {
  const from = placeOf('from', options, command)
  const to = placeOf('to', options, command)
  const stop = new AbortController()
  void signalToStop().then((signal) => stop.abort(new StoppedError(signal)))
  const progress = options.quiet === true ? NO_PROGRESS : process.stderr.isTTY ? await openProgress() : lineProgress()
  try {
    const copied = await copyBetween(from, to, options.storage, {
      drainMs: options.drain * 1_000,
      signal: stop.signal,
      retry: { retryForMs: RETRY_MS },
      onProgress: (project, at) => progress.update(copyState(project, at)),
      onDrain: (waitMs) => {
        if (options.quiet !== true)
          printNote(`waiting ${formatDuration(waitMs)} for calls of servers to the source to end`)
      },
    })
    progress.stop()
    tell(copied, placeText(to), options)
  } catch (error) {
    stop.signal.throwIfAborted()
    if (!hasCode(error, 'FOLDER_HELD')) throw error
    const advice = 'a server has the folder open: stop it first, or copy a backup that was restored'
    throw new Error(advice, { cause: error })
  } finally {
    progress.stop()
  }
}

function copyState(project: string, at: MirrorProgress | 'compared'): TransferState {
  if (at !== 'compared') return objectsState(at, project)
  return { done: 0, total: undefined, text: `${printable(project)}: is compared` }
}

function placeOf(side: StorageSide, options: CopyOptions, command: Command): StoragePlace {
  const [folder, records, blobs, sealingKeyFile] =
    side === 'from'
      ? [options.from, options.fromRecords, options.fromBlobs, options.fromSealingKeyFile]
      : [options.to, options.toRecords, options.toBlobs, options.toSealingKeyFile]
  if ((records === undefined) !== (blobs === undefined))
    return command.error(`--${side}-records and --${side}-blobs belong together: a storage has records and blobs`)
  const place: StoragePlace = {
    data: folder === undefined ? '' : resolve(folder),
    side,
    records,
    blobs,
    sealingKeyFile: sealingKeyFile ?? process.env.STOWAGE_SEALING_KEY_FILE,
  }
  // Keys and tokens are in the folder unless the records hold them.
  if (folder !== undefined && keepsCredentials(place))
    return command.error(`--${side} and --${side}-records are two places; name one of them`)
  if (folder === undefined && !keepsCredentials(place))
    return command.error(
      `--${side} is missing: name a data folder, or records and blobs with --${side}-records and --${side}-blobs`,
    )
  return place
}

/** Opens both sides, copies, and closes them. */
async function copyBetween(
  from: StoragePlace,
  to: StoragePlace,
  kind: FolderKind | undefined,
  options: CopyStorageOptions,
): Promise<CopiedStorage> {
  const copied: CopiedStorage[] = []
  await withStorage(from, async (backend) => {
    const { credentials } = credentialsOf(from, isShared(from) ? backend.records : undefined)
    const target = await servedStorage(to, kind)
    try {
      await target.backend.ready?.()
      const source = { backend, credentials, place: placeText(from) }
      copied.push(await copyStorage(source, { ...target, place: placeText(to) }, options))
    } finally {
      await target.backend.close()
    }
  })
  return copied[0]
}

function tell({ projects, tokens }: CopiedStorage, place: string, { json }: CopyOptions): void {
  if (json === true) return printJson({ projects, tokens })
  const objects = projects.reduce((sum, project) => sum + project.objects.count, 0)
  for (const { project, objects, records } of projects) {
    const counts = Object.entries(records).map(([kind, { count }]) => `${kind}: ${count}`)
    printLine(`${project}: ${[formatCount(objects.count, 'object'), ...counts].join(', ')}`)
  }
  printLine(
    `copied ${formatCount(projects.length, 'project')} with ${formatCount(objects, 'object')} and ${formatCount(tokens, 'token')} to ${place}; both sides were compared`,
  )
}
