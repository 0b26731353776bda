import type { Environment } from '../../environment.ts'
import type { BufferPool } from '../../memory/buffer-pool.ts'
import type { BlobStore } from '../../storage/backend.ts'
import { readSource } from '../pack/read-source.ts'
import type { PlanRecord } from '../records/records.ts'
import { decodePlanTables, type PlanTables } from './plan-format.ts'

export interface PlanReaderParts {
  readonly blobs: BlobStore
  readonly environment: Environment
  readonly bufferPool: BufferPool
}

/**
 * Reads the tables of the plan in a blob. They are copies, so the blob is read into memory that the pool lends. After a
 * read that failed, that memory is left to the collector: a thread may still write into it. Throws `corrupt_data`.
 */
export async function readPlanTables(
  { blobs, environment, bufferPool }: PlanReaderParts,
  blob: string,
  { tablesStart, planBytes }: Pick<PlanRecord, 'tablesStart' | 'planBytes'>,
): Promise<PlanTables> {
  const into = bufferPool.take(planBytes - tablesStart)
  const bytes = await readSource(blobs, { blob }, tablesStart, planBytes, { into })
  try {
    return await decodePlanTables(bytes, environment)
  } finally {
    if (into !== undefined) bufferPool.giveBack(into)
  }
}
