import type { ArtifactRecord } from '../domain/artifacts.ts'
import { decodeRecord } from '../records/codec.ts'
import { boundsOf, parseGeneration, projectKey, type Scope } from '../records/keys.ts'
import type { AutomationStore } from '../records/store.ts'

/** A blob that a record names, and the known facts of its content. */
export interface NamedBlob {
  readonly name: string
  readonly bytes: number
  readonly digest: { readonly sha256: string } | { readonly crc32: number }
  /** A description of it, for messages. */
  readonly subject: string
}

interface BatchWithBlob {
  readonly bytes: number
  readonly blob: { readonly name: string; readonly crc32: number } | null
}

/** The blobs that the records of a project name; with `runId`, those of one run's annotations alone. */
export async function* blobsOfProject(
  store: Pick<AutomationStore, 'records'>,
  scope: Scope,
  signal: AbortSignal,
  runId?: string,
): AsyncGenerator<NamedBlob> {
  const annotations = runId === undefined ? projectKey(scope, 'annotation') : projectKey(scope, 'annotation', runId)
  for await (const entries of store.records.range(boundsOf(annotations), { signal })) {
    for (const { key, value } of entries) {
      const { blob, bytes } = decodeRecord<BatchWithBlob>(key, value)
      if (blob !== null)
        yield { name: blob.name, bytes, digest: { crc32: blob.crc32 }, subject: 'annotations of a run' }
    }
  }
  if (runId !== undefined) return
  for await (const entries of store.records.range(boundsOf(projectKey(scope, 'artifact')), { signal })) {
    for (const { key, value } of entries) {
      const { id, blob, sizeBytes, sha256 } = decodeRecord<ArtifactRecord>(key, value)
      yield { name: blob, bytes: sizeBytes, digest: { sha256 }, subject: `artifact ${id}` }
    }
  }
}

/** `NaN` for a name that was not made here. */
export function generationOfBlob(name: string): number {
  return parseGeneration(name.split('/').at(-1)?.split('-')[0] ?? '')
}
