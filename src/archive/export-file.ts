import { type FileHandle, open, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { syncFolder } from '../data-folder/durable-files.ts'
import { StowageError } from '../errors.ts'
import { quotedPath } from '../object/id.ts'
import type { ManifestPart } from './format.ts'
import { oneAtATime } from './one-at-a-time.ts'
import { type ProjectAddress, remoteProject } from './remote.ts'
import type { RemoteProject } from './remote-project.ts'
import {
  type Checkpoint,
  type ExportOptions,
  type ExportResult,
  type ExportState,
  writeArchive,
} from './write-archive.ts'

/** How far an export is. */
export interface ExportProgress {
  /** Bytes of the file so far. */
  readonly bytes: number
  /** Objects in the file so far. */
  readonly objects: number
}

/** How a project is exported into a file. */
export interface ExportFileOptions extends ExportOptions {
  /** Aborts the export, which can go on later. */
  readonly signal?: AbortSignal
  /** Called as the file grows. */
  readonly onProgress?: (progress: ExportProgress) => void
}

/**
 * The first line of a journal: the subject of the export. An export of another subject into the same file starts again.
 */
interface JournalOpening {
  readonly url: string
  readonly project: string
  readonly since: string | null
  readonly sealed: boolean
  readonly sealedFor: string | null
}

/**
 * Exports a project into a file, which appears when it is whole. Until then it grows as `<path>.partial`, beside a
 * journal; a later export of the same subject continues from there, unless the server was restored in between. Throws
 * `conflict` if the file exists, another process is making it, or the project does not continue the base, and
 * `not_found` if the folder or the project does not exist.
 */
export async function exportToFile(
  address: ProjectAddress,
  path: string,
  options: ExportFileOptions = {},
): Promise<ExportResult> {
  const project = remoteProject(address, options.signal)
  if (!(await exists(dirname(path))))
    throw new StowageError('not_found', `the folder ${quotedPath(dirname(path))} does not exist; create it first`)
  return oneAtATime(`${path}.partial`, `the file ${quotedPath(path)}`, () => makeFile(project, path, options))
}

async function makeFile(project: RemoteProject, path: string, options: ExportFileOptions): Promise<ExportResult> {
  if (await exists(path)) throw new StowageError('conflict', `the file ${quotedPath(path)} exists; choose another name`)
  const [partial, journalPath] = [`${path}.partial`, `${path}.partial.journal`]
  const opening: JournalOpening = {
    url: project.remote.connection.url,
    project: project.remote.projectId,
    since: options.since?.cursor ?? null,
    sealed: options.hasSealedSecrets === true,
    sealedFor: options.sealSecretsFor ?? null,
  }
  const state = await readJournal(journalPath, opening, (await sizeOf(partial)) ?? 0)
  const write = (from: ExportState | undefined): Promise<ExportResult> =>
    writePartial({ partial, journalPath, opening, state: from }, project, options)
  try {
    const result = await write(state).catch((error: unknown) => {
      if (state === undefined || !(error instanceof StowageError) || error.code !== 'conflict') throw error
      // The server does not have the history of the interrupted export any more.
      return write(undefined)
    })
    await rename(partial, path)
    await syncFolder(dirname(path))
    await rm(journalPath, { force: true })
    return result
  } catch (error) {
    // There is nothing to continue from.
    if ((await sizeOf(partial)) === 0) for (const file of [partial, journalPath]) await rm(file, { force: true })
    throw error
  }
}

interface PartialArchive {
  readonly partial: string
  readonly journalPath: string
  readonly opening: JournalOpening
  readonly state: ExportState | undefined
}

async function writePartial(
  { partial, journalPath, opening, state }: PartialArchive,
  project: RemoteProject,
  options: ExportFileOptions,
): Promise<ExportResult> {
  const file = await open(partial, state === undefined ? 'w' : 'r+', 0o600)
  const journal = await open(journalPath, state === undefined ? 'w' : 'a', 0o600)
  try {
    await file.truncate(state?.bytes ?? 0)
    if (state === undefined) await journal.appendFile(`${JSON.stringify(opening)}\n`)
    const pieces = writeArchive(project, options, state)
    const result = await append(file, journal, pieces, { state, onProgress: options.onProgress })
    await file.sync()
    return result
  } finally {
    await file.close()
    await journal.close()
  }
}

async function append(
  file: FileHandle,
  journal: FileHandle,
  pieces: ReturnType<typeof writeArchive>,
  { state, onProgress }: { readonly state: ExportState | undefined } & Pick<ExportFileOptions, 'onProgress'>,
): Promise<ExportResult> {
  let position = state?.bytes ?? 0
  let ended: ExportResult | undefined
  let objects = (state?.parts ?? []).reduce((sum, part) => sum + (part.objects ?? 0), 0)
  for await (const { bytes, checkpoint, result } of pieces) {
    for (let at = 0; at < bytes.length;) {
      const { bytesWritten } = await file.write(bytes, at, bytes.length - at, position)
      at += bytesWritten
      position += bytesWritten
    }
    ended = result
    if (checkpoint === undefined) continue
    // Parts that the journal names must not be lost in a crash that the journal survives.
    await file.datasync()
    await journal.appendFile(`${JSON.stringify(checkpoint)}\n`)
    objects += checkpoint.part.objects ?? 0
    onProgress?.({ bytes: position, objects })
  }
  return ended as ExportResult
}

/** The leftovers of the export before; `undefined` if this one cannot continue from them. */
async function readJournal(path: string, opening: JournalOpening, sizeBytes: number): Promise<ExportState | undefined> {
  const lines = (await readFile(path, 'utf8').catch(() => '')).split('\n').slice(0, -1)
  if (lines[0] !== JSON.stringify(opening)) return undefined
  const parts: ManifestPart[] = []
  let last: (Omit<ExportState, 'parts'> & { readonly count: number }) | undefined
  for (const line of lines.slice(1)) {
    const { part, bytes, cursor, end, runsListedAt } = JSON.parse(line) as Checkpoint
    if (bytes > sizeBytes) break
    parts.push(part)
    if (cursor !== undefined && end !== undefined) last = { bytes, cursor, end, runsListedAt, count: parts.length }
  }
  return last && { ...last, parts: parts.slice(0, last.count) }
}

async function exists(path: string): Promise<boolean> {
  return (await sizeOf(path)) !== undefined
}

async function sizeOf(path: string): Promise<number | undefined> {
  return stat(path).then(
    ({ size }) => size,
    () => undefined,
  )
}
