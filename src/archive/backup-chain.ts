import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { ExportBase, Manifest, SourceBase } from './format.ts'
import { ArchiveReader } from './read-archive.ts'

const NUMBER_DIGITS = 8
const ARCHIVE = /^\d+\.tar$/

/** One archive of a chain. */
export interface ChainLink extends ExportBase {
  /** The name of its file in the folder of the chain. */
  readonly name: string
  readonly manifest: Manifest
}

/** The archives of a project in a backup. */
export interface ArchiveChain {
  /** The last full archive with those that continue it. */
  readonly links: readonly ChainLink[]
  /** The name of the next archive. */
  readonly nextName: string
}

/** The chain in a folder, whether or not a backup was finished with it. */
export async function readChain(folder: string): Promise<ArchiveChain> {
  let links: ChainLink[] = []
  let last = 0
  for (const name of (await readdir(folder)).filter((one) => ARCHIVE.test(one)).sort()) {
    last = Number.parseInt(name, 10)
    const link = await linkOf(folder, name)
    if (link.base === null) links = [link]
    else if (link.base.sha256 === links.at(-1)?.sha256) links.push(link)
  }
  return { links, nextName: `${String(last + 1).padStart(NUMBER_DIGITS, '0')}.tar` }
}

async function linkOf(folder: string, name: string): Promise<ChainLink & { readonly base: SourceBase | null }> {
  const path = join(folder, name)
  const archive = await ArchiveReader.open(path)
  try {
    const [manifest, { base, cursor, runsListedAt }] = [await archive.manifest(), await archive.source()]
    return { name, path, manifest, sha256: manifest.sha256, cursor, runsListedAt, base }
  } finally {
    await archive.close()
  }
}

/** Whether the archive has no objects, and the same records as the one before. */
export async function addsNothing(path: string, before: ChainLink): Promise<boolean> {
  const archive = await ArchiveReader.open(path)
  try {
    const manifest = await archive.manifest()
    return manifest.objects === 0 && recordsOf(manifest) === recordsOf(before.manifest)
  } finally {
    await archive.close()
  }
}

function recordsOf({ parts }: Manifest): string {
  return parts
    .filter(({ objects }) => objects === undefined)
    .map(({ sha256 }) => sha256)
    .join()
}
