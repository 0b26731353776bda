import type { Dir } from 'node:fs'
import { opendir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { BlobInfo } from '../../src/storage/backend.ts'

/** Files that are looked at together. */
const BATCH_FILES = 256

/**
 * The files below `root` whose name starts with `prefix` and ends with `suffix`, without the suffix, in batches that
 * are never empty.
 */
export async function* listFiles(
  root: string,
  prefix: string,
  suffix: string,
): AsyncGenerator<readonly BlobInfo[], void, void> {
  const folder = prefix.slice(0, prefix.lastIndexOf('/') + 1)
  let names: string[] = []
  for await (const name of namesIn(root, folder, prefix, suffix)) {
    names.push(name)
    if (names.length < BATCH_FILES) continue
    const batch = await infosOf(root, names, suffix)
    names = []
    if (batch.length > 0) yield batch
  }
  const batch = await infosOf(root, names, suffix)
  if (batch.length > 0) yield batch
}

/** Descends only where the prefix allows it. `folder` is empty or ends with a slash. */
async function* namesIn(
  root: string,
  folder: string,
  prefix: string,
  suffix: string,
): AsyncGenerator<string, void, void> {
  const entries = await openFolder(join(root, ...folder.split('/')))
  if (!entries) return
  for await (const entry of entries) {
    const name = `${folder}${entry.name}`
    if (entry.isDirectory() && (name.startsWith(prefix) || prefix.startsWith(`${name}/`)))
      yield* namesIn(root, `${name}/`, prefix, suffix)
    const blobName = name.slice(0, -suffix.length)
    if (entry.isFile() && name.endsWith(suffix) && blobName.startsWith(prefix)) yield blobName
  }
}

async function openFolder(path: string): Promise<Dir | undefined> {
  try {
    return await opendir(path, { bufferSize: BATCH_FILES })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

async function infosOf(root: string, names: readonly string[], suffix: string): Promise<BlobInfo[]> {
  const infos = await Promise.all(names.map((name) => infoOf(`${join(root, ...name.split('/'))}${suffix}`, name)))
  return infos.filter((info) => info !== undefined)
}

async function infoOf(path: string, name: string): Promise<BlobInfo | undefined> {
  try {
    const { size, mtimeMs } = await stat(path)
    return { name, sizeBytes: size, modifiedAtMs: mtimeMs }
  } catch (error) {
    // Removed since its folder was read.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
