import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { importFiles, type ImportOptions, type ImportResult } from './import-file.ts'
import { type ProjectAddress, remoteProject } from './remote.ts'
import { type ExportOptions, writeArchive } from './write-archive.ts'

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
 * Imports the bytes of one archive. They are kept in a temporary file until all of them are verified; nothing is sent
 * before.
 */
export async function importProject(
  address: ProjectAddress,
  archive: AsyncIterable<Uint8Array>,
  options: ImportOptions = {},
): Promise<ImportResult> {
  const folder = await mkdtemp(join(tmpdir(), 'stowage-'))
  try {
    const path = join(folder, 'archive.tar')
    await pipeline(Readable.from(archive), createWriteStream(path, { mode: 0o600 }), { signal: options.signal })
    return await importFiles(address, [path], options)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
