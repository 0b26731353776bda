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
import { BLOB_FAULT_RULES, BLOB_SHARING_RULES } from './blob-sharing-rules.ts'
import { casesOf, type ConformanceCase, type ConformanceOptions, type Opener } from './case.ts'
import { RECORD_CLOSING_RULES, RECORD_REOPENING_RULES } from './record-closing-rules.ts'
import { RECORD_COMMIT_RULES } from './record-commit-rules.ts'
import { RecordContext } from './record-context.ts'
import { RECORD_FAULT_RULES } from './record-fault-rules.ts'
import { RECORD_INSERT_RULES } from './record-insert-rules.ts'
import { RECORD_RANGE_RULES } from './record-range-rules.ts'
import { RECORD_READ_RULES } from './record-read-rules.ts'
import { RECORD_SHARING_RULES } from './record-sharing-rules.ts'

export { objectStoreConformance } from './object-store.ts'
export { storageBenchmark } from './benchmark.ts'
export type { StorageBenchmarkOptions, StorageBenchmarkResult } from './benchmark.ts'
export type { ConformanceCase, ConformanceFaults, ConformanceOptions, ConnectionCut, Opener } from './case.ts'

/**
 * The contract of `RecordStore` as cases for any test runner, one after the other. `open` gives the store under test, each time with the same data unless
 * its `isPersistent` is false; each case opens it, uses keys of its own, which it leaves behind, and closes it. A case that fails says what was expected
 * and which calls led to it; one that hangs fails after `timeoutMs`.
 *
 *     for (const { name, run } of recordStoreConformance(() => myBackend().records)) test(name, run)
 *
 * @example
 * import { test } from 'node:test'
 * import { recordStoreConformance } from 'stowage/conformance'
 * import { memoryBackend } from 'stowage/memory'
 *
 * for (const { name, run } of recordStoreConformance(() => memoryBackend().records)) test(name, run)
 */
export function recordStoreConformance(
  open: Opener<RecordStore>,
  options?: ConformanceOptions<RecordStore>,
): readonly ConformanceCase[] {
  const rules = [
    ...RECORD_READ_RULES,
    ...RECORD_RANGE_RULES,
    ...RECORD_INSERT_RULES,
    ...RECORD_COMMIT_RULES,
    ...RECORD_CLOSING_RULES,
    ...RECORD_REOPENING_RULES,
    ...RECORD_SHARING_RULES,
    ...RECORD_FAULT_RULES,
  ]
  return casesOf(rules, open, (session) => new RecordContext(session), options)
}

/**
 * The contract of `BlobStore` as cases for any test runner, one after the other. `open` gives the store under test, each time with the same data unless
 * its `isPersistent` is false; each case opens it, uses names of its own, which it leaves behind, and closes it. A case that fails says what was expected
 * and which calls led to it; one that hangs fails after `timeoutMs`.
 *
 *     for (const { name, run } of blobStoreConformance(() => myBackend().blobs)) test(name, run)
 */
export function blobStoreConformance(
  open: Opener<BlobStore>,
  options?: ConformanceOptions<BlobStore>,
): readonly ConformanceCase[] {
  const rules = [
    ...BLOB_PUT_RULES,
    ...BLOB_READ_RULES,
    ...BLOB_REMOVE_RULES,
    ...BLOB_LIST_RULES,
    ...BLOB_CLOSING_RULES,
    ...BLOB_REOPENING_RULES,
    ...BLOB_MEMORY_RULES,
    ...BLOB_SHARING_RULES,
    ...BLOB_FAULT_RULES,
  ]
  return casesOf(rules, open, (session) => new BlobContext(session), options)
}
