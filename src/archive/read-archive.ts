import { createHash } from 'node:crypto'
import { type FileHandle, open, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { addAbortSignal, Readable } from 'node:stream'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { StowageError } from '../errors.ts'
import { quotedPath } from '../object/id.ts'
import {
  FORMAT,
  FORMAT_VERSION,
  MANIFEST,
  type Manifest,
  type ManifestPart,
  OPENING,
  type Opening,
  SOURCE,
  type Source,
} from './format.ts'
import { namelessFile } from './nameless-file.ts'
import { BLOCK_BYTES, decodeHeader, END_BYTES, paddingOf } from './tar.ts'
import { manifestOf, sourceText } from './write-archive.ts'

/** An archive: the path of its file, or its bytes. */
export type ArchiveSource = string | AsyncIterable<Uint8Array>

/** One entry of the file. */
export interface ArchiveEntry {
  readonly name: string
  readonly start: number
  readonly sizeBytes: number
}

const READ_BYTES = 1_048_576
/**
 * Nothing that an export writes into one part has more. An inflated page of objects ends with the object that fills it.
 */
const PART_BYTES_MAX = 320 * 1_048_576
const TEXT_BYTES_MAX = 256 * 1_048_576

const inflated = promisify(gunzip) as (bytes: Uint8Array, options: { maxOutputLength: number }) => Promise<Buffer>

/**
 * The file of an export. Throws `corrupt_data` for an incomplete or damaged one, `not_supported` for one of a later
 * version, `not_found` if there is none, and `invalid_request` for what is not a file.
 */
export class ArchiveReader {
  /** What messages call it. */
  readonly label: string
  /** In the order of the file. */
  readonly entries: readonly ArchiveEntry[]
  readonly #file: FileHandle

  private constructor(label: string, file: FileHandle, entries: readonly ArchiveEntry[]) {
    this.label = label
    this.#file = file
    this.entries = entries
  }

  /** Reads the headers alone; bytes are first kept in a temporary file. */
  static async open(source: ArchiveSource, signal?: AbortSignal): Promise<ArchiveReader> {
    const [label, file] =
      typeof source === 'string'
        ? [quotedPath(source), await openFile(source)]
        : ['the archive that was streamed', await fileOf(source, signal)]
    try {
      const reader = new ArchiveReader(label, file, await readHeaders(label, file))
      await reader.#checkOpening()
      return reader
    } catch (error) {
      await file.close()
      throw error
    }
  }

  close(): Promise<void> {
    return this.#file.close()
  }

  manifest(): Promise<Manifest> {
    return this.#json<Manifest>(MANIFEST)
  }

  async source(): Promise<Source> {
    const { sha256, ...source } = await this.#json<Source & { readonly sha256?: string }>(SOURCE)
    if (sha256 !== undefined && sourceText(source) === sourceText(source, sha256)) return source
    throw damaged(this.label, `${SOURCE} does not match its SHA-256`)
  }

  /** Reads everything and compares it with the manifest. */
  async verify(signal?: AbortSignal): Promise<Manifest> {
    const manifest = await this.manifest()
    await this.source()
    const parts = this.entries.filter(({ name }) => ![OPENING, MANIFEST, SOURCE].includes(name))
    if (
      !Array.isArray(manifest.parts) ||
      manifest.parts.length !== parts.length ||
      JSON.stringify(manifestOf(manifest.parts)) !== JSON.stringify(manifest)
    )
      throw damaged(this.label, 'its manifest is not that of its parts')
    for (const [at, entry] of parts.entries()) await this.#verifyPart(entry, manifest.parts[at], signal)
    return manifest
  }

  /** The bytes of an entry, in pieces. */
  async *chunks({ start, sizeBytes }: ArchiveEntry): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < sizeBytes;) {
      const wanted = Math.min(READ_BYTES, sizeBytes - at)
      const bytes = await readExactly(this.#file, start + at, wanted)
      if (bytes === undefined) throw damaged(this.label, 'it is cut short')
      yield bytes
      at += wanted
    }
  }

  /** The content of an entry that is a gzip file. */
  async inflated(entry: ArchiveEntry): Promise<Buffer> {
    try {
      return await inflated(await this.#whole(entry, PART_BYTES_MAX), { maxOutputLength: PART_BYTES_MAX })
    } catch (cause) {
      throw damaged(this.label, `${entry.name} cannot be decompressed`, cause)
    }
  }

  async #verifyPart(entry: ArchiveEntry, part: ManifestPart, signal: AbortSignal | undefined): Promise<void> {
    const hash = createHash('sha256')
    for await (const chunk of this.chunks(entry)) {
      signal?.throwIfAborted()
      hash.update(chunk)
    }
    if (entry.name === part.name && entry.sizeBytes === part.bytes && hash.digest('hex') === part.sha256) return
    throw damaged(this.label, `${entry.name} does not match its SHA-256 in the manifest`)
  }

  async #checkOpening(): Promise<void> {
    const { format, version } = await this.#json<Opening>(OPENING)
    if (this.entries[0].name !== OPENING || format !== FORMAT || !Number.isInteger(version) || version < 1)
      throw damaged(this.label, `it does not begin with ${OPENING}`)
    if (version > FORMAT_VERSION)
      throw new StowageError(
        'not_supported',
        `the archive ${this.label} has version ${version}; this release reads versions up to ${FORMAT_VERSION}`,
      )
    if (this.entries.at(-1)?.name !== SOURCE)
      throw damaged(this.label, 'it does not end with its source: the export was cut off')
  }

  async #json<T>(name: string): Promise<T> {
    const entry = this.entries.find((one) => one.name === name)
    if (entry === undefined) throw damaged(this.label, `it has no ${name}`)
    try {
      return JSON.parse((await this.#whole(entry, TEXT_BYTES_MAX)).toString('utf8')) as T
    } catch (cause) {
      throw damaged(this.label, `${name} is not JSON`, cause)
    }
  }

  async #whole(entry: ArchiveEntry, bytesMax: number): Promise<Buffer> {
    if (entry.sizeBytes > bytesMax) throw damaged(this.label, `${entry.name} has ${entry.sizeBytes} bytes`)
    const chunks: Uint8Array[] = []
    for await (const chunk of this.chunks(entry)) chunks.push(chunk)
    return Buffer.concat(chunks)
  }
}

async function openFile(path: string): Promise<FileHandle> {
  const info = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
    throw new StowageError('not_found', `there is no archive ${quotedPath(path)}`)
  })
  if (info.isFile()) return open(path, 'r')
  const what = info.isDirectory() ? 'a folder' : 'a pipe or a device, and an archive is read in any order'
  throw new StowageError('invalid_request', `${quotedPath(path)} is ${what}; name the file of an archive`)
}

/** An archive is read in any order. */
async function fileOf(bytes: AsyncIterable<Uint8Array>, signal: AbortSignal | undefined): Promise<FileHandle> {
  const file = await namelessFile()
  try {
    const stream = Readable.from(bytes)
    // A source that sends nothing must not hold up the end.
    await writeFile(file, signal === undefined ? stream : addAbortSignal(signal, stream))
    return file
  } catch (error) {
    await file.close()
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    throw new Error(`the streamed archive does not fit into the folder of temporary files, ${tmpdir()}`, {
      cause: error,
    })
  }
}

async function readHeaders(label: string, file: FileHandle): Promise<readonly ArchiveEntry[]> {
  const entries: ArchiveEntry[] = []
  for (let at = 0; ;) {
    const block = await readExactly(file, at, BLOCK_BYTES)
    const header = block === undefined ? undefined : decodeHeader(block)
    if (header === 'end') {
      await checkEnd(label, file, at)
      return entries
    }
    if (header === undefined)
      throw damaged(label, at === 0 ? 'it is not a tar file' : `it is cut short, or damaged at byte ${at}`)
    const { name, sizeBytes } = header
    const end = at + BLOCK_BYTES + sizeBytes
    await checkZeros(label, file, end, paddingOf(sizeBytes))
    entries.push({ name, start: at + BLOCK_BYTES, sizeBytes })
    at = end + paddingOf(sizeBytes)
  }
}

/** Two empty blocks, and as many more as the writer's `tar` fills its last record with. */
async function checkEnd(label: string, file: FileHandle, at: number): Promise<void> {
  const { size } = await file.stat()
  await checkZeros(label, file, at, Math.max(END_BYTES, size - at))
}

/** No checksum covers the bytes between the parts. */
async function checkZeros(label: string, file: FileHandle, start: number, count: number): Promise<void> {
  for (let at = start; at < start + count; at += READ_BYTES) {
    const bytes = await readExactly(file, at, Math.min(READ_BYTES, start + count - at))
    if (bytes === undefined) throw damaged(label, 'it is cut short')
    const damage = bytes.findIndex((byte) => byte !== 0)
    if (damage >= 0) throw damaged(label, `byte ${at + damage} must be 0`)
  }
}

async function readExactly(file: FileHandle, start: number, count: number): Promise<Buffer | undefined> {
  const bytes = Buffer.allocUnsafe(count)
  for (let at = 0; at < count;) {
    const { bytesRead } = await file.read(bytes, at, count - at, start + at)
    if (bytesRead === 0) return undefined
    at += bytesRead
  }
  return bytes
}

function damaged(label: string, how: string, cause?: unknown): StowageError {
  return new StowageError('corrupt_data', `${label} is not a complete archive: ${how}`, { cause })
}
