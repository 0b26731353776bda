import { StowageError } from '../errors.ts'
import { quoted } from '../object/id.ts'
import type { ExportBase } from './format.ts'
import { ArchiveReader } from './read-archive.ts'

const CURSOR = /^[0-9a-f]+(\.[0-9a-f]+){4}$/

/** The basis of an incremental export after this archive. Reads its headers and manifest. */
export async function baseOfFile(path: string): Promise<ExportBase> {
  const archive = await ArchiveReader.open(path)
  try {
    const { cursor, runsListedAt } = await archive.source()
    const { sha256 } = await archive.manifest()
    return { cursor, runsListedAt, sha256 }
  } finally {
    await archive.close()
  }
}

/** The same of a place as an export tells it. Throws `invalid_request`. */
export function baseOfCursor(cursor: string): ExportBase {
  if (CURSOR.test(cursor)) return { cursor }
  throw new StowageError('invalid_request', `${quoted(cursor)} is not the cursor of an export, such as 1.2a.0.4.7f`)
}
