import { createHash } from 'node:crypto'
import { StowageError } from '../../errors.ts'
import { quoted } from '../../object/id.ts'
import { BLOB_READ_BYTES_MAX } from '../../storage/backend.ts'
import { blobName, projectKey } from '../records/keys.ts'
import { expectAbsent } from '../records/store.ts'
import type { RunArtifact } from '../schemas/types.ts'
import { checkIdempotencyKey, checkResourceId, notFoundError } from '../schemas/checks.ts'
import type { DomainParts } from './parts.ts'
import { checkAttempt, type RunChanges } from './run-changes.ts'
import { isFinal, type RunRecord } from './run-record.ts'

const NAME_BYTES_MAX = 255
const CONTROL = /[\p{Cc}\p{Surrogate}\u2028\u2029]/u

/** A file of a run as it is kept. */
export interface ArtifactRecord extends RunArtifact {
  readonly runId: string
  readonly blob: string
  /** Hex digits: names the content. */
  readonly sha256: string
}

export interface NewArtifactFile {
  /** Of the run. */
  readonly attempt: number
  /** The display name: 1 to 255 bytes of UTF-8 on one line. It never becomes a path. */
  readonly name: string
  readonly content: AsyncIterable<Uint8Array>
  /** Two requests of one run with the same key store one artifact. */
  readonly idempotencyKey?: string | undefined
  readonly sizeHintBytes?: number | undefined
}

/** Files that runs leave. */
export class Artifacts {
  readonly #parts: Pick<DomainParts, 'store' | 'limits'> & { readonly changes: RunChanges }

  constructor(parts: Pick<DomainParts, 'store' | 'limits'> & { readonly changes: RunChanges }) {
    this.#parts = parts
  }

  /** Streams. Throws `artifact_too_large`, and `conflict` for a run that has ended or has as many as it may. */
  async store(projectId: string, runId: string, file: NewArtifactFile, signal?: AbortSignal): Promise<RunArtifact> {
    const { store, limits, changes } = this.#parts
    checkFile(file, limits.artifactBytesMax)
    const { scope, stored } = await changes.found(projectId, runId)
    const onceKey =
      file.idempotencyKey === undefined ? undefined : projectKey(scope, 'once', runId, digestOf(file.idempotencyKey))
    const before = onceKey === undefined ? undefined : await store.getByKey<RunArtifact>(onceKey)
    if (before !== undefined) return before.value
    this.#checkRoom(stored.value, file.attempt)
    const blob = blobName(scope, 'artifact', `${runId}-${store.newBlobSuffix()}`)
    const hash = createHash('sha256')
    const { sizeBytes } = await store.blobs.put(
      blob,
      bounded(file.content, limits.artifactBytesMax, (chunk) => hash.update(chunk)),
      { signal, sizeHintBytes: file.sizeHintBytes },
    )
    const artifact: RunArtifact = { id: store.newId(), name: file.name, sizeBytes }
    const record: ArtifactRecord = { ...artifact, runId, blob, sha256: hash.digest('hex') }
    return this.#commit(projectId, record, { onceKey, attempt: file.attempt })
  }

  /** Throws `not_found`. */
  async get(projectId: string, artifactId: string): Promise<ArtifactRecord> {
    checkResourceId(artifactId, 'artifact')
    const { store } = this.#parts
    const scope = await store.scope(projectId)
    const stored = scope === undefined ? undefined : await store.get<ArtifactRecord>(scope, 'artifact', artifactId)
    if (stored === undefined) throw notFoundError('artifact', artifactId)
    return stored.value
  }

  /** The bytes from `start` up to, not including, `end`. */
  async *read({ blob }: ArtifactRecord, start: number, end: number, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    const { blobs } = this.#parts.store
    const pieceBytes = Math.min(blobs.readBytesPreferred, BLOB_READ_BYTES_MAX)
    for (let at = start; at < end; at += pieceBytes)
      yield await blobs.read(blob, at, Math.min(end, at + pieceBytes), { signal })
  }

  async #commit(
    projectId: string,
    record: ArtifactRecord,
    { onceKey, attempt }: { readonly onceKey: Uint8Array | undefined; readonly attempt: number },
  ): Promise<RunArtifact> {
    const { store, changes } = this.#parts
    const { id, name, sizeBytes } = record
    const artifact: RunArtifact = { id, name, sizeBytes }
    let other: RunArtifact | undefined
    try {
      await changes.change(projectId, record.runId, async (run, scope) => {
        other = onceKey === undefined ? undefined : (await store.getByKey<RunArtifact>(onceKey))?.value
        if (other !== undefined) return undefined
        this.#checkRoom(run, attempt)
        const put = [
          store.entry(projectKey(scope, 'artifact', id), record),
          ...(onceKey === undefined ? [] : [store.entry(onceKey, artifact)]),
        ]
        return {
          run: { artifacts: [...run.artifacts, artifact] },
          put,
          expect: onceKey === undefined ? [] : [expectAbsent(onceKey)],
        }
      })
    } catch (error) {
      // A commit whose answer was lost may have gone through, so its blob stays until the sweep knows.
      if (error instanceof StowageError && !error.isRetryable) await this.#discard(record)
      throw error
    }
    if (other === undefined) return artifact
    await this.#discard(record)
    return other
  }

  async #discard({ blob }: ArtifactRecord): Promise<void> {
    await this.#parts.store.blobs.remove([blob]).catch(() => undefined)
  }

  #checkRoom(run: RunRecord, attempt: number): void {
    const { status, artifacts } = run
    const { artifactsMax } = this.#parts.limits
    checkAttempt(run, attempt)
    if (isFinal(status))
      throw new StowageError('conflict', `the run has ended (${status}), so it stores no more artifacts`)
    if (artifacts.length >= artifactsMax)
      throw new StowageError('conflict', `the run has stored ${artifactsMax} artifacts, the limit`)
  }
}

async function* bounded(
  content: AsyncIterable<Uint8Array>,
  bytesMax: number,
  see: (chunk: Uint8Array) => void,
): AsyncGenerator<Uint8Array> {
  let bytes = 0
  for await (const chunk of content) {
    bytes += chunk.length
    if (bytes > bytesMax) throw tooLarge(bytesMax)
    see(chunk)
    yield chunk
  }
}

/** Throws `invalid_request`. */
export function checkArtifactName(name: string): void {
  if (name.trim() === '' || Buffer.byteLength(name) > NAME_BYTES_MAX || CONTROL.test(name)) {
    throw new StowageError(
      'invalid_request',
      `the artifact's name is ${quoted(name)}; it must be one line of 1 to ${NAME_BYTES_MAX} bytes of UTF-8, without control characters`,
    )
  }
}

function checkFile({ name, idempotencyKey, sizeHintBytes = 0 }: NewArtifactFile, bytesMax: number): void {
  checkArtifactName(name)
  checkIdempotencyKey(idempotencyKey)
  if (sizeHintBytes > bytesMax) throw tooLarge(bytesMax)
}

function tooLarge(bytesMax: number): StowageError {
  return new StowageError('artifact_too_large', `the artifact is larger than the limit of ${bytesMax} bytes`)
}

function digestOf(key: string): string {
  return createHash('sha256')
    .update(JSON.stringify(['artifact', key]))
    .digest('hex')
}
