import { StowageError } from '../errors.ts'
import { quoted } from '../object/id.ts'
import type { ExportBase } from './format.ts'
import { ArchiveReader } from './read-archive.ts'
import { parseCursor } from './server/cursor.ts'

/** The basis of an incremental export after this archive. Reads its headers and manifest. */
export async function baseOfFile(path: string): Promise<ExportBase> {
  const archive = await ArchiveReader.open(path)
  try {
    const { project, cursor, runsListedAt } = await archive.source()
    const { sha256 } = await archive.manifest()
    return { cursor, runsListedAt, sha256, project, path }
  } finally {
    await archive.close()
  }
}

/** The same of a place as an export tells it. Throws `invalid_request`. */
export function baseOfCursor(cursor: string): ExportBase {
  if (parseCursor(cursor) !== undefined) return { cursor }
  throw new StowageError(
    'invalid_request',
    `${quoted(cursor)} is not the cursor of an export, such as 1.2a.0.4.7f.3.9b1c2d3e4f506172`,
  )
}
