import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { postgresRecords } from '../../adapters/postgres/index.ts'
import { s3Blobs, type S3BlobsOptions } from '../../adapters/s3/index.ts'
import { type Environment, REAL_ENVIRONMENT } from '../../src/environment.ts'
import { createObjectService, openAccess } from '../../src/index.ts'
import { combinedBackend, type RecordStore } from '../../src/storage/index.ts'

/** How a server of the cases runs, as JSON in its first argument. */
export interface CaseServerOptions {
  readonly connectionString: string
  readonly s3: S3BlobsOptions
  /** How far its clock is from that of the machine. */
  readonly clockOffsetMs: number
  /** How much faster the time of its upkeep goes. */
  readonly upkeepSpeed: number
  /** The control: it acknowledges each commit before it makes it. */
  readonly isLazy: boolean
  /** Of a call of PostgreSQL, and of an attempt at the S3 store. */
  readonly callTimeoutMs?: number
}

/** Timers that wait for longer belong to the upkeep; time limits of requests are shorter. */
const UPKEEP_TIMER_MS_MIN = 30_000
/** How late the control makes its commits. */
const LAZY_MS = 500

const { connectionString, s3, clockOffsetMs, upkeepSpeed, isLazy, callTimeoutMs } = JSON.parse(
  process.argv[2],
) as CaseServerOptions

const environment: Environment = {
  ...REAL_ENVIRONMENT,
  now: () => Date.now() + clockOffsetMs,
  monotonicMs: () => performance.now() * upkeepSpeed,
  setTimer: (delayMs, act) =>
    REAL_ENVIRONMENT.setTimer(delayMs < UPKEEP_TIMER_MS_MIN ? delayMs : delayMs / upkeepSpeed, act),
}

function lazy(records: RecordStore): RecordStore {
  return {
    limits: records.limits,
    ready: () => records.ready?.() ?? Promise.resolve(),
    getMany: (keys, options) => records.getMany(keys, options),
    range: (bounds, options) => records.range(bounds, options),
    insertMany: (entries, options) => records.insertMany(entries, options),
    commit: async (change) => {
      setTimeout(() => void records.commit(change).catch(() => undefined), LAZY_MS)
      return { ok: true }
    },
    close: () => records.close(),
  }
}

const records = postgresRecords({
  connectionString,
  connectionsMax: 6,
  ...(callTimeoutMs === undefined ? {} : { callTimeoutMs }),
})
const service = createObjectService({
  backend: combinedBackend({
    records: isLazy ? lazy(records) : records,
    blobs: s3Blobs({ ...s3, ...(callTimeoutMs === undefined ? {} : { timeoutMs: callTimeoutMs }) }),
  }),
  access: openAccess(),
  environment,
  memoryBytesMax: 48 * 1_048_576,
})
await service.ready()
const server = createServer(service.node)
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.on('disconnect', () => process.exit())
