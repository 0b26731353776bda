import { setTimeout as delay } from 'node:timers/promises'
import type { Pool } from 'pg'
import type { RecordStore } from '../../src/storage/backend.ts'
import type { OpenedRecords } from '../../src/storage/driver.ts'
import { guardedRecords } from '../../src/storage/guard.ts'
import { type Address, addressOf, checkSchema, START_TIMEOUT_MS } from './connection-options.ts'
import { type Connection, Connections, type PostgresPool } from './connections.ts'
import { isStarting } from './postgres-errors.ts'
import { POSTGRES_RECORD_LIMITS, PostgresRecords } from './postgres-records.ts'
import { prepareSchema } from './migration.ts'

export type { PostgresPool, PostgresPoolClient } from './connections.ts'

/** The database, and how it is used. Exactly one of `connectionString` and `pool` is required. */
export interface PostgresRecordsOptions {
  /**
   * `postgres://user:password@host:5432/database`. Outside localhost the connection is encrypted and the certificate of
   * the server is checked, unless the string has an `sslmode` of its own.
   */
  readonly connectionString?: string
  /**
   * A `Pool` of `pg` that you made. You close it, and its settings decide about encryption and time limits of its own;
   * give it an `error` listener, as `pg` asks for.
   */
  readonly pool?: PostgresPool
  /** The schema that holds everything. It is made when there is none. Default: `stowage`. */
  readonly schema?: string
  /** Connections that this store uses at once. Default: 10. */
  readonly connectionsMax?: number
  /** How long one call may take, in milliseconds, its wait for a connection included. Default: 60,000. */
  readonly callTimeoutMs?: number
  /** How long `ready` waits for PostgreSQL to start, in milliseconds. Default: 30,000. */
  readonly startTimeoutMs?: number
}

const CONNECTIONS_MAX = 10
const CALL_TIMEOUT_MS = 60_000
const START_LOOK_MS = 250
const IDLE_MS = 30_000

/** A pool, what it is called in messages, and how it is closed. */
interface OpenPool {
  readonly pool: PostgresPool
  close(): Promise<void>
}

/**
 * Records in PostgreSQL 15 or newer, for any number of servers at once. Needs the package `pg`. `combinedBackend` puts
 * blobs beside them. The schema is made, and brought to this release, when the records are opened. `ready` rejects if
 * the server is a standby, or if `synchronous_commit` is off: acknowledged records could be lost.
 *
 * @example
 * import { createObjectService, openAccess } from 'stowage'
 * import { filesystemBlobs } from 'stowage/filesystem'
 * import { postgresRecords } from 'stowage/postgres'
 * import { combinedBackend } from 'stowage/storage'
 *
 * const backend = combinedBackend({
 *   records: postgresRecords({ connectionString: 'postgres://stowage:secret@localhost/stowage' }),
 *   blobs: filesystemBlobs({ path: './shared-disk' }),
 * })
 * const service = createObjectService({ backend, access: openAccess() })
 * await service.close()
 */
export function postgresRecords(options: PostgresRecordsOptions): RecordStore {
  const { connectionString, pool, schema = 'stowage' } = options
  if ((connectionString === undefined) === (pool === undefined))
    throw new TypeError('postgresRecords needs exactly one of connectionString and pool')
  checkSchema(schema)
  const address = connectionString === undefined ? undefined : addressOf(connectionString)
  return guardedRecords({
    limits: POSTGRES_RECORD_LIMITS,
    isShared: true,
    place: `${address?.place ?? 'PostgreSQL'}, schema ${schema}`,
    open: () => openRecords(options, address, schema),
  })
}

async function openRecords(
  options: PostgresRecordsOptions,
  address: Address | undefined,
  schema: string,
): Promise<OpenedRecords> {
  const {
    connectionsMax = CONNECTIONS_MAX,
    callTimeoutMs = CALL_TIMEOUT_MS,
    startTimeoutMs = START_TIMEOUT_MS,
  } = options
  const opened = options.pool ? hostsPool(options.pool) : await ownPool(options, address)
  const connections = new Connections(opened.pool, { connectionsMax, callTimeoutMs, check: checkConnection })
  const closeAll = async (): Promise<void> => {
    await connections.close()
    await opened.close()
  }
  try {
    await whenStarted(startTimeoutMs, () =>
      connections.run(undefined, (connection) => prepareSchema(connection, schema)),
    )
  } catch (error) {
    await closeAll()
    throw error
  }
  return { records: new PostgresRecords(connections, schema), close: closeAll }
}

function hostsPool(pool: PostgresPool): OpenPool {
  return { pool, close: async () => undefined }
}

async function ownPool(
  { connectionString, connectionsMax = CONNECTIONS_MAX, callTimeoutMs = CALL_TIMEOUT_MS }: PostgresRecordsOptions,
  address: Address | undefined,
): Promise<OpenPool> {
  const client = await postgresClient()
  const pool = new client.Pool({
    connectionString,
    ...(address?.needsTls === true ? { ssl: true } : {}),
    max: connectionsMax,
    // An address where nothing answers is told as soon as one that refuses.
    connectionTimeoutMillis: Math.min(callTimeoutMs, START_TIMEOUT_MS),
    statement_timeout: callTimeoutMs,
    idle_in_transaction_session_timeout: callTimeoutMs,
    idleTimeoutMillis: IDLE_MS,
    keepAlive: true,
    application_name: 'stowage',
    // A role may have another default; `checkConnection` refuses it in a pool of the host.
    options: '-c default_transaction_isolation=read\\ committed',
  })
  // An idle connection that breaks: the pool makes another one when it is needed.
  pool.on('error', () => undefined)
  return { pool, close: () => pool.end() }
}

async function postgresClient(): Promise<{ readonly Pool: typeof Pool }> {
  try {
    return (await import('pg')).default
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new Error('postgresRecords needs the package pg, which is not installed: run "npm install pg"', {
      cause: error,
    })
  }
}

/** A server that starts is waited for; anything else is an error at once. */
async function whenStarted(timeoutMs: number, open: () => Promise<void>): Promise<void> {
  const endMs = performance.now() + timeoutMs
  for (;;) {
    try {
      await open()
      return
    } catch (error) {
      if (!isStarting(error) || performance.now() + START_LOOK_MS > endMs) throw error
      await delay(START_LOOK_MS)
    }
  }
}

/** Each connection, since the same address may lead to another server after a failover. */
async function checkConnection(connection: Connection): Promise<void> {
  const [row] = await connection.query(
    `SELECT pg_is_in_recovery() AS is_standby, current_setting('synchronous_commit') AS durability,
      current_setting('default_transaction_isolation') AS isolation`,
  )
  if (row?.is_standby === true)
    throw new Error('this PostgreSQL server is a standby: records can only be kept on the primary; name its address')
  if (row?.durability === 'off')
    throw new Error(
      'synchronous_commit is off for this user or database: PostgreSQL would lose acknowledged records when it crashes; set it to on',
    )
  if (row?.isolation !== 'read committed')
    throw new Error(
      `default_transaction_isolation is ${String(row?.isolation)}; the records need "read committed", the default of PostgreSQL`,
    )
}
