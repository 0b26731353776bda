import type { BlobStore, RecordStore } from '../backend.ts'
import { BlobContext } from './blob-context.ts'
import { BLOB_MEMORY_RULES, BLOB_PUT_RULES } from './blob-put-rules.ts'
import {
  BLOB_CLOSING_RULES,
  BLOB_LIST_RULES,
  BLOB_READ_RULES,
  BLOB_REMOVE_RULES,
  BLOB_REOPENING_RULES,
} from './blob-read-rules.ts'
import { casesOf, type ConformanceCase, type Opener } from './case.ts'
import { RECORD_CLOSING_RULES, RECORD_REOPENING_RULES } from './record-closing-rules.ts'
import { RECORD_COMMIT_RULES } from './record-commit-rules.ts'
import { RecordContext } from './record-context.ts'
import { RECORD_INSERT_RULES } from './record-insert-rules.ts'
import { RECORD_RANGE_RULES } from './record-range-rules.ts'
import { RECORD_READ_RULES } from './record-read-rules.ts'

export { storageBenchmark } from './benchmark.ts'
export type { StorageBenchmarkOptions, StorageFigures } from './benchmark.ts'
export type { ConformanceCase, Opener } from './case.ts'

/** Which rules a store cannot be asked for. */
export interface ConformanceOptions {
  /** False for a store that forgets when it is closed: the cases that close it and open it again are left out. */
  readonly persistent?: boolean
}

/** Which rules a blob store cannot be asked for. */
export interface BlobConformanceOptions extends ConformanceOptions {
  /** False for a store that keeps blobs in this process: the case that streams a large blob through bounded memory is left out. */
  readonly boundedMemory?: boolean
}

/**
 * The contract of `RecordStore` as cases for any test runner, one after the other. `open` gives the store under test, each time the same data when it is persistent;
 * each case opens it, uses keys of its own, which it leaves behind, and closes it.
 *
 *     for (const { name, run } of recordStoreConformance(() => myRecords(url))) test(name, run)
 */
export function recordStoreConformance(
  open: Opener<RecordStore>,
  { persistent = true }: ConformanceOptions = {},
): readonly ConformanceCase[] {
  const rules = [
    ...RECORD_READ_RULES,
    ...RECORD_RANGE_RULES,
    ...RECORD_INSERT_RULES,
    ...RECORD_COMMIT_RULES,
    ...RECORD_CLOSING_RULES,
  ]
  return casesOf(
    persistent ? [...rules, ...RECORD_REOPENING_RULES] : rules,
    open,
    (session) => new RecordContext(session),
  )
}

/**
 * The contract of `BlobStore` as cases for any test runner, one after the other. `open` gives the store under test, each time the same data when it is persistent;
 * each case opens it, uses names of its own, which it leaves behind, and closes it.
 *
 *     for (const { name, run } of blobStoreConformance(() => myBlobs(url))) test(name, run)
 */
export function blobStoreConformance(
  open: Opener<BlobStore>,
  options: BlobConformanceOptions = {},
): readonly ConformanceCase[] {
  const { persistent = true, boundedMemory = true } = options
  const rules = [...BLOB_PUT_RULES, ...BLOB_READ_RULES, ...BLOB_REMOVE_RULES, ...BLOB_LIST_RULES, ...BLOB_CLOSING_RULES]
  const more = [...(persistent ? BLOB_REOPENING_RULES : []), ...(boundedMemory ? BLOB_MEMORY_RULES : [])]
  return casesOf([...rules, ...more], open, (session) => new BlobContext(session))
}
