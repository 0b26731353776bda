import { type FileHandle, mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A file that goes with the process, however that ends: its name is removed while it is open. */
export async function namelessFile(): Promise<FileHandle> {
  const folder = await mkdtemp(join(tmpdir(), 'stowage-'))
  try {
    return await open(join(folder, 'items'), 'wx+', 0o600)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
