import { Readable } from 'node:stream'
import type { ExportFileOptions } from './export-file.ts'
import { importFiles, type ImportOptions, type ImportResult } from './import-file.ts'
import { type ProjectAddress, remoteProject } from './remote.ts'
import { type ExportOptions, type ExportResult, writeArchive } from './write-archive.ts'

/** The bytes of an archive of the project. Nothing is asked of the server before the stream is read. */
export function exportProject(
  address: ProjectAddress,
  options: ExportOptions & { readonly signal?: AbortSignal } = {},
): Readable {
  const { signal } = options
  const project = remoteProject(address, signal)
  async function* bytes(): AsyncGenerator<Uint8Array> {
    for await (const piece of writeArchive(project, options)) if (piece.bytes.length > 0) yield piece.bytes
  }
  return Readable.from(bytes(), { objectMode: false, ...(signal === undefined ? {} : { signal }) })
}

/**
 * Hands the bytes of an archive of the project to `write`, in their order. An export that breaks off cannot continue.
 * Throws as `exportToFile` does for the project and the base.
 */
export async function exportInto(
  address: ProjectAddress,
  write: (bytes: Uint8Array) => Promise<void>,
  options: ExportFileOptions = {},
): Promise<ExportResult> {
  const progress = { bytes: 0, objects: 0 }
  let ended: ExportResult | undefined
  for await (const { bytes, checkpoint, result } of writeArchive(remoteProject(address, options.signal), options)) {
    await write(bytes)
    ended = result
    progress.bytes += bytes.length
    progress.objects += checkpoint?.part.objects ?? 0
    if (checkpoint !== undefined) options.onProgress?.(progress)
  }
  return ended as ExportResult
}

/**
 * Imports the bytes of one archive. They are kept in a temporary file until all of them are verified; nothing is sent
 * before.
 */
export function importProject(
  address: ProjectAddress,
  archive: AsyncIterable<Uint8Array>,
  options: ImportOptions = {},
): Promise<ImportResult> {
  return importFiles(address, [archive], options)
}
