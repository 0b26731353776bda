import { createHash, type Hash } from 'node:crypto'
import { basename } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { checkSubject } from './export-subject.ts'
import {
  ARTIFACTS_FOLDER,
  type ExportBase,
  FORMAT,
  FORMAT_VERSION,
  MANIFEST,
  type Manifest,
  type ManifestPart,
  OBJECTS_FOLDER,
  OPENING,
  RECORDS_FOLDER,
  SOURCE,
  type Source,
  type SourceBase,
} from './format.ts'
import type { RemoteProject } from './remote-project.ts'
import { recipientKey, recipientText } from './server/recipient-key.ts'
import { type MovedArtifact, sourceItems } from './source-records.ts'
import { encodeHeader, END_BYTES, paddingOf } from './tar.ts'

/** How a project is exported. */
export interface ExportOptions {
  /** Only data after this is exported. Everything by default. */
  readonly since?: ExportBase
  /**
   * With the secrets of automations, sealed with the key of the server. Needs the right to write; only a server with
   * the same key opens them.
   */
  readonly hasSealedSecrets?: boolean
  /**
   * A public key, as PEM: the secrets of automations are sealed for it, and its private half opens them at the import.
   * Needs the right to write, and a server whose operator allows the key (`secretRecipients`). Not with
   * `hasSealedSecrets`.
   */
  readonly sealSecretsFor?: string
}

/** An archive that is valid up to here: an export that breaks off later continues from this. */
export interface Checkpoint {
  /** Bytes of the archive. */
  readonly bytes: number
  /** The part that ends here. */
  readonly part: ManifestPart
  /** The place from which the objects continue; absent for records, which cannot continue in the middle. */
  readonly cursor?: string
  /** The end of the run that reads the objects. */
  readonly end?: string
  readonly runsListedAt: string
}

/** The outcome of an export. */
export interface ExportResult {
  /** The manifest of the archive. */
  readonly manifest: Manifest
  /** The end of the project's objects. */
  readonly cursor: string | null
  /** The time at which the runs were listed, by the clock of the server. */
  readonly runsListedAt: string
}

/** Some bytes of an archive, and whether it is good up to them. */
export interface ArchivePiece {
  readonly bytes: Uint8Array
  readonly checkpoint?: Checkpoint
  /** With the last bytes. */
  readonly result?: ExportResult
}

/**
 * The parts that an interrupted export already has. The cursor and the end prove that the server still has the history
 * from which they come.
 */
export interface ExportState {
  readonly bytes: number
  readonly parts: readonly ManifestPart[]
  readonly cursor: string
  readonly end: string
  readonly runsListedAt: string
}

/** Bytes of JSON lines in one part of records, about. */
const RECORDS_BYTES = 1_048_576
const NUMBER_DIGITS = 8
/** Compresses as well as higher levels within a few in 100, in half the time. */
const COMPRESSION = { level: 4 }

const compressed = promisify(gzip) as (bytes: Uint8Array, options: typeof COMPRESSION) => Promise<Buffer>

/**
 * The bytes of an archive of the project, piece by piece; from where `state` ends, if it is given. Throws as
 * `checkSubject` does before the first piece.
 */
export async function* writeArchive(
  project: RemoteProject,
  { since, hasSealedSecrets = false, sealSecretsFor }: ExportOptions,
  state?: ExportState,
): AsyncGenerator<ArchivePiece> {
  if (hasSealedSecrets && sealSecretsFor !== undefined)
    throw new TypeError('an export has its secrets sealed for a key (sealSecretsFor) or as they are, not both')
  const recipient = sealSecretsFor === undefined ? undefined : recipientText(recipientKey(sealSecretsFor))
  const writer = new ArchiveWriter(state)
  let runsListedAt = state?.runsListedAt ?? ''
  if (state === undefined) {
    await checkSubject(project, since)
    yield* writer.file(OPENING, json({ format: FORMAT, version: FORMAT_VERSION }))
    // Before anything else, so that everything that a version needs is among the objects that follow.
    if (await project.hasRecords()) {
      runsListedAt = await project.timeText()
      const secrets = { hasSealedSecrets, ...(recipient === undefined ? {} : { recipient }) }
      // A base without a cursor had no objects: nothing proves that its runs are ours.
      const runsKnownUntil = since === undefined || since.cursor === null ? undefined : since.runsListedAt
      yield* writer.records(project, { ...secrets, runsKnownUntil })
    }
  }
  let cursor = state?.cursor ?? since?.cursor ?? null
  for await (const { lines, objects, next, end } of project.objectPages(cursor, state?.end)) {
    cursor = next
    if (objects === 0) continue
    const content = await compressed(lines, COMPRESSION)
    yield* writer.part(writer.nextName(OBJECTS_FOLDER, 'txt'), content, { objects, cursor, end, runsListedAt })
  }
  const source: Source = {
    project: project.remote.projectId,
    cursor,
    runsListedAt,
    base: since === undefined ? null : nameOf(since),
  }
  const manifest = manifestOf(writer.parts)
  yield* writer.file(MANIFEST, json(manifest))
  yield* writer.file(SOURCE, Buffer.from(sourceText(source)))
  yield { bytes: new Uint8Array(END_BYTES), result: { manifest, cursor, runsListedAt } }
}

function nameOf({ cursor, sha256, path }: ExportBase): SourceBase {
  return { cursor, sha256: sha256 ?? null, file: path === undefined ? null : basename(path) }
}

class ArchiveWriter {
  readonly parts: ManifestPart[]
  bytes: number
  readonly #numbers = new Map<string, number>()

  constructor(state: ExportState | undefined) {
    this.parts = [...(state?.parts ?? [])]
    this.bytes = state?.bytes ?? 0
    for (const folder of [OBJECTS_FOLDER, RECORDS_FOLDER])
      this.#numbers.set(folder, this.parts.filter(({ name }) => name.startsWith(folder)).length)
  }

  nextName(folder: string, extension: string): string {
    const number = (this.#numbers.get(folder) ?? 0) + 1
    this.#numbers.set(folder, number)
    return `${folder}${String(number).padStart(NUMBER_DIGITS, '0')}.${extension}.gz`
  }

  async *records(project: RemoteProject, options: Parameters<typeof sourceItems>[1]): AsyncGenerator<ArchivePiece> {
    let lines = ''
    const flush = async function* (this: ArchiveWriter): AsyncGenerator<ArchivePiece> {
      if (lines === '') return
      const content = await compressed(Buffer.from(lines), COMPRESSION)
      lines = ''
      yield* this.part(this.nextName(RECORDS_FOLDER, 'ndjson'), content)
    }.bind(this)
    for await (const item of sourceItems(project, options)) {
      const record = 'record' in item ? item.record : { kind: 'artifact', value: item.artifact }
      lines += `${JSON.stringify(record)}\n`
      if (lines.length >= RECORDS_BYTES || 'artifact' in item) yield* flush()
      if ('artifact' in item) yield* this.#artifact(project, item.artifact)
    }
    yield* flush()
  }

  /** An entry that the manifest does not list. */
  async *file(name: string, content: Buffer): AsyncGenerator<ArchivePiece> {
    yield this.#piece(encodeHeader({ name, sizeBytes: content.length }), content, padding(content.length))
  }

  async *part(
    name: string,
    content: Buffer,
    { objects, ...place }: { readonly objects?: number } & Partial<Omit<Checkpoint, 'bytes' | 'part'>> = {},
  ): AsyncGenerator<ArchivePiece> {
    const part: ManifestPart = {
      name,
      bytes: content.length,
      sha256: createHash('sha256').update(content).digest('hex'),
      ...(objects === undefined ? {} : { objects }),
    }
    const { bytes } = this.#piece(encodeHeader({ name, sizeBytes: content.length }), content, padding(content.length))
    yield { bytes, checkpoint: this.#checkpoint(part, place) }
  }

  async *#artifact(project: RemoteProject, { id, runId, sizeBytes }: MovedArtifact): AsyncGenerator<ArchivePiece> {
    const name = `${ARTIFACTS_FOLDER}${runId}/${id}`
    const hash = createHash('sha256')
    yield this.#piece(encodeHeader({ name, sizeBytes }))
    const content = exactly(project.artifact(id), sizeBytes, hash)
    for await (const chunk of content) yield this.#piece(chunk)
    yield {
      ...this.#piece(padding(sizeBytes)),
      checkpoint: this.#checkpoint({ name, bytes: sizeBytes, sha256: hash.digest('hex') }, {}),
    }
  }

  #piece(...buffers: readonly Uint8Array[]): ArchivePiece {
    const bytes = buffers.length === 1 ? buffers[0] : Buffer.concat(buffers)
    this.bytes += bytes.length
    return { bytes }
  }

  #checkpoint(part: ManifestPart, place: Partial<Omit<Checkpoint, 'bytes' | 'part'>>): Checkpoint {
    this.parts.push(part)
    return { bytes: this.bytes, part, runsListedAt: '', ...place }
  }
}

async function* exactly(chunks: AsyncIterable<Uint8Array>, sizeBytes: number, hash: Hash): AsyncGenerator<Uint8Array> {
  let bytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.length
    hash.update(chunk)
    if (bytes > sizeBytes) break
    yield chunk
  }
  if (bytes !== sizeBytes) throw new Error(`an artifact has ${bytes} bytes or more; its run says ${sizeBytes}`)
}

export function manifestOf(parts: readonly ManifestPart[]): Manifest {
  const sums = parts.map(({ name, sha256 }) => `${sha256}  ${name}\n`)
  return {
    format: FORMAT,
    version: FORMAT_VERSION,
    objects: parts.reduce((sum, { objects = 0 }) => sum + objects, 0),
    parts,
    sha256: sha256Of(sums.join('')),
  }
}

/** The JSON of a source, with the SHA-256 of the rest of it. */
export function sourceText(source: Source, sha256: string = sha256Of(JSON.stringify(source))): string {
  return `${JSON.stringify({ ...source, sha256 })}\n`
}

function sha256Of(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function padding(sizeBytes: number): Uint8Array {
  return new Uint8Array(paddingOf(sizeBytes))
}

function json(value: object): Buffer {
  return Buffer.from(`${JSON.stringify(value)}\n`)
}
