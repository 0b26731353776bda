import { createHash, randomBytes } from 'node:crypto'
import type { ArtifactRecord } from '../../automation-server/domain/artifacts.ts'
import { blobName, projectKey } from '../../automation-server/records/keys.ts'
import { type AutomationStore, expectAbsent } from '../../automation-server/records/store.ts'
import { StowageError } from '../../errors.ts'
import { quoted } from '../../object/id.ts'
import type { ImportOutcome } from './record-import.ts'

/** A file of a run as it is imported. */
export interface ImportedArtifact {
  readonly id: string
  readonly runId: string
  readonly name: string
  /** Hex digits: the digest that the content must have. */
  readonly sha256: string
  readonly content: AsyncIterable<Uint8Array>
}

/** Keeps the file under its own id. Throws `invalid_request` for content of another checksum, `artifact_too_large`. */
export async function importArtifact(
  { store, bytesMax }: { readonly store: AutomationStore; readonly bytesMax: number },
  projectId: string,
  { id, runId, name, sha256, content }: ImportedArtifact,
  signal: AbortSignal,
): Promise<ImportOutcome> {
  const scope = await store.writingScope(projectId)
  const key = projectKey(scope, 'artifact', id)
  if ((await store.getByKey(key)) !== undefined) return 'unchanged'
  const blob = blobName(scope, 'artifact', `${runId}-${randomBytes(8).toString('hex')}`)
  const hash = createHash('sha256')
  const { sizeBytes } = await store.blobs.put(
    blob,
    hashed(content, (chunk, bytes) => {
      if (bytes > bytesMax)
        throw new StowageError('artifact_too_large', `the artifact is larger than the limit of ${bytesMax} bytes`)
      hash.update(chunk)
    }),
    { signal },
  )
  const record: ArtifactRecord = { id, name, sizeBytes, runId, blob, sha256: hash.digest('hex') }
  const isWhole = record.sha256 === sha256
  if (isWhole && (await store.commit(scope, { put: [store.entry(key, record)], expect: [expectAbsent(key)] })))
    return 'created'
  // A blob that cannot be removed now is swept later: no record names it.
  await store.blobs.remove([blob]).catch(() => undefined)
  if (isWhole) return 'unchanged'
  throw new StowageError('invalid_request', `the content of the artifact ${quoted(id)} does not match its SHA-256`)
}

async function* hashed(
  content: AsyncIterable<Uint8Array>,
  see: (chunk: Uint8Array, bytesSoFar: number) => void,
): AsyncGenerator<Uint8Array> {
  let bytes = 0
  for await (const chunk of content) {
    bytes += chunk.length
    see(chunk, bytes)
    yield chunk
  }
}
