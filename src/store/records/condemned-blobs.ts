import type { Entry } from '../../storage/backend.ts'
import { condemnedBlobKey } from './keys.ts'
import { encodeCondemnedBlob } from './records.ts'

/** Marks a blob that is to go, in the commit that takes away the last record that names it. */
export function condemnedBlobEntry(projectId: string, blobName: string, epoch: number): Entry {
  const key = condemnedBlobKey(projectId, blobName)
  return { key, value: encodeCondemnedBlob(key, { epoch, isRemoved: false }) }
}
