import { crc32 } from 'node:zlib'
import type { Environment } from '../../environment.ts'
import type { BlobStore, Entry } from '../../storage/backend.ts'
import { corrupt } from '../bytes/byte-codec.ts'
import { damageBy, type Finding } from './finding.ts'
import { keyParts, planBlobName } from '../records/keys.ts'
import { decodePlanTables, encodePlanHeader, PATCH_SOURCE } from '../plan/plan-format.ts'
import { decodePlanRecord } from '../records/records.ts'
import { readSource } from '../pack/read-source.ts'

/** Reads a stored plan whole, and notes the blob that it names. */
export async function* checkPlan(
  blobs: BlobStore,
  { key, value }: Entry,
  { named, environment }: { readonly named: Set<string>; readonly environment: Environment },
): AsyncGenerator<Finding> {
  const [projectId, , rootId] = keyParts(key)
  try {
    const { planId, tablesStart, planBytes } = decodePlanRecord(key, value)
    const source = { blob: planBlobName(projectId, planId) }
    named.add(source.blob)
    const header = encodePlanHeader(planId, projectId)
    const stored = await readSource(blobs, source, 0, header.length)
    if (Buffer.compare(stored, header) !== 0) throw corrupt('its header is damaged')
    const { rows } = await decodePlanTables(await readSource(blobs, source, tablesStart, planBytes), environment)
    for (let row = 0; row < rows.sources.length; row++) {
      if (rows.sources[row] !== PATCH_SOURCE) continue
      const patch = await readSource(blobs, source, rows.starts[row], rows.starts[row] + rows.storedBytes[row])
      if (crc32(patch) !== rows.storedCrc32[row]) throw corrupt(`row ${row} of its patch does not match its CRC-32`)
    }
  } catch (error) {
    const subject = `plan of ${JSON.stringify((rootId ?? '').slice(0, 64))}`
    yield damageBy(
      error,
      projectId,
      subject,
      (message) => `${message}; no object is lost by it: reindex drops the plan, and it is made again`,
    )
  }
}
