import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { decodeLines } from '../client/download/lines.ts'
import type { ObjectText } from '../client/common/types.ts'
import { upload } from '../client/upload/upload-batches.ts'
import { StowageError } from '../errors.ts'
import { quoted } from '../object/id.ts'
import { checkPlace, type ReadArchive } from './chain-order.ts'
import { ARTIFACTS_FOLDER, type Manifest, OBJECTS_FOLDER, RECORDS_FOLDER } from './format.ts'
import { type ArchiveEntry, ArchiveReader, type ArchiveSource } from './read-archive.ts'
import { type ProjectAddress, remoteProject } from './remote.ts'
import type { MovedRecord, RemoteProject } from './remote-project.ts'
import { RecordSender, type RecordTotals } from './record-sender.ts'
import { SecretOpener } from './sealed-secrets.ts'
import type { MovedArtifact } from './source-records.ts'

/** How far an import is. */
export interface ImportProgress {
  /** Objects that were read. */
  readonly objects: number
  /** Of these, the objects that the target lacked. */
  readonly sent: number
}

/** How archives are imported. */
export interface ImportOptions {
  /**
   * The private key, as PEM, of the archives whose secrets were sealed for a key. They are opened here and sent to the
   * target, which seals them with its own key. Without it they are left out.
   */
  readonly secretsKey?: string
  /** Aborts the import, which can be repeated. */
  readonly signal?: AbortSignal
  /** Called after each request. */
  readonly onProgress?: (progress: ImportProgress) => void
}

/** The outcome of an import. */
export interface ImportResult extends ImportProgress {
  /** Objects that the target holds with another text; that one stays. */
  readonly differing: number
  /** Models, versions, automations and runs. */
  readonly records: RecordTotals
  /** Ids of automations that were enabled in the archive and are disabled here, because their secrets did not come. */
  readonly disabledAutomations: readonly string[]
}

/** Records about runs are taken from every archive of a chain; all others from the newest, which lists everything. */
const KINDS_OF_RUNS: ReadonlySet<string> = new Set(['annotations', 'logs', 'artifact', 'run'])
const BATCH_BYTES = 8_388_608

/**
 * Imports a full archive, and the incremental ones that follow it: paths of files, or bytes. Each is verified before
 * anything is sent; bytes are kept in a temporary file until then. Objects
 * come first, then records, so that nothing is visible before the objects that it needs. An import that is started
 * again sends only the parts that the target lacks. Throws `corrupt_data`, `not_supported`, and `invalid_request` for
 * archives that do not follow each other.
 */
export async function importFiles(
  address: ProjectAddress,
  sources: readonly ArchiveSource[],
  options: ImportOptions = {},
): Promise<ImportResult> {
  const project = remoteProject(address, options.signal)
  const archives: ArchiveReader[] = []
  try {
    await verifyChain(sources, archives, { signal: options.signal, isWhole: true })
    return await new Importer(project, archives, options).run()
  } finally {
    for (const archive of archives) await archive.close()
  }
}

/**
 * Reads archives that follow each other, and compares them with their checksums. Throws as `importFiles` does, but
 * accepts incremental archives without those before them.
 */
export async function verifyFiles(
  sources: readonly ArchiveSource[],
  signal?: AbortSignal,
): Promise<readonly Manifest[]> {
  const archives: ArchiveReader[] = []
  try {
    return await verifyChain(sources, archives, { signal, isWhole: false })
  } finally {
    for (const archive of archives) await archive.close()
  }
}

/** Opens the archives into `archives`, which the caller closes. A whole chain begins with a full archive. */
async function verifyChain(
  sources: readonly ArchiveSource[],
  archives: ArchiveReader[],
  { signal, isWhole }: { readonly signal: AbortSignal | undefined; readonly isWhole: boolean },
): Promise<readonly Manifest[]> {
  const chain: ReadArchive[] = []
  for (const from of sources) {
    const archive = await ArchiveReader.open(from, signal)
    archives.push(archive)
    const { label } = archive
    const source = await archive.source()
    if (isWhole || chain.length > 0) checkPlace(label, source, chain.at(-1))
    chain.push({ label, source, manifest: await archive.verify(signal) })
  }
  return chain.map(({ manifest }) => manifest)
}

class Importer {
  readonly #project: RemoteProject
  readonly #archives: readonly ArchiveReader[]
  readonly #options: ImportOptions
  readonly #secrets: SecretOpener | undefined
  /** Ids of automations that are enabled in the newest archive. */
  readonly #enabled = new Set<string>()
  readonly #tally = { objects: 0, sent: 0, differing: 0 }

  constructor(project: RemoteProject, archives: readonly ArchiveReader[], options: ImportOptions) {
    this.#project = project
    this.#archives = archives
    this.#options = options
    this.#secrets = options.secretsKey === undefined ? undefined : new SecretOpener(options.secretsKey)
  }

  async run(): Promise<ImportResult> {
    for (const archive of this.#archives)
      for (const entry of archive.entries) if (isIn(entry, OBJECTS_FOLDER)) await this.#objects(archive, entry)
    const sender = new RecordSender(this.#project)
    for (const [at, archive] of this.#archives.entries())
      await this.#records(archive, sender, at === this.#archives.length - 1)
    const records = await sender.end()
    return { ...this.#tally, records, disabledAutomations: await this.#disabled() }
  }

  async #disabled(): Promise<readonly string[]> {
    const ids: string[] = []
    if (this.#enabled.size === 0) return ids
    for await (const page of this.#project.list('automations'))
      for (const { id, enabled } of page) if (enabled === false && this.#enabled.has(String(id))) ids.push(String(id))
    return ids
  }

  /** One request after the other, so that the target keeps the order. */
  async #objects(archive: ArchiveReader, entry: ArchiveEntry): Promise<void> {
    const { remote, signal } = this.#project
    const result = await upload(remote, objectsOf(archive, entry), {
      concurrency: 1,
      batchBytes: BATCH_BYTES,
      ...(signal === undefined ? {} : { signal }),
    })
    this.#tally.objects += result.objects
    this.#tally.sent += result.sent
    this.#tally.differing += result.differing
    this.#options.onProgress?.(this.#tally)
  }

  async #records(archive: ArchiveReader, sender: RecordSender, isNewest: boolean): Promise<void> {
    const announced = new Map<string, MovedArtifact>()
    for (const entry of archive.entries) {
      if (isIn(entry, RECORDS_FOLDER)) {
        const lines = (await archive.inflated(entry)).toString('utf8').split('\n').slice(0, -1)
        for (const line of lines) {
          const { kind, value } = JSON.parse(line) as { kind: string; value: Record<string, unknown> }
          if (kind === 'artifact') announced.set(String(value.id), value as unknown as MovedArtifact)
          else if (isNewest && kind === 'automation' && value.enabled === true) this.#enabled.add(String(value.id))
          if (kind !== 'artifact' && (isNewest || KINDS_OF_RUNS.has(kind)))
            await sender.send(kind === 'automation' ? { kind, value: await this.#opened(value) } : { kind, value })
        }
      }
      if (isIn(entry, ARTIFACTS_FOLDER)) await this.#artifact(archive, entry, announced)
    }
  }

  /** An automation with its secrets opened, or without them. */
  async #opened({ secrets, ...record }: MovedRecord['value']): Promise<MovedRecord['value']> {
    if (typeof secrets !== 'string' || this.#secrets === undefined) return record
    return { ...record, secrets: await this.#secrets.open(secrets, String(record.id)) }
  }

  async #artifact(archive: ArchiveReader, entry: ArchiveEntry, announced: Map<string, MovedArtifact>): Promise<void> {
    const id = entry.name.split('/').at(-1) ?? ''
    const artifact = announced.get(id)
    if (artifact === undefined)
      throw new StowageError('corrupt_data', `${archive.label} has a file ${quoted(entry.name)} without its record`)
    announced.delete(id)
    const hash = createHash('sha256')
    for await (const chunk of archive.chunks(entry)) hash.update(chunk)
    await this.#project.putArtifact(
      { id, runId: artifact.runId, name: artifact.name, sha256: hash.digest('hex') },
      () => Readable.toWeb(Readable.from(archive.chunks(entry))) as ReadableStream<Uint8Array>,
    )
  }
}

async function* objectsOf(archive: ArchiveReader, entry: ArchiveEntry): AsyncGenerator<readonly ObjectText[]> {
  const lines = await archive.inflated(entry)
  yield* decodeLines(
    (async function* () {
      yield lines
    })(),
    entry.name,
  )
}

function isIn({ name }: ArchiveEntry, folder: string): boolean {
  return name.startsWith(folder)
}
