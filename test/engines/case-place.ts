import { randomBytes } from 'node:crypto'
import { postgresRecords } from '../../adapters/postgres/index.ts'
import { s3Blobs } from '../../adapters/s3/index.ts'
import { combinedBackend, type StorageBackend } from '../../src/storage/index.ts'
import type { Ending } from '../support/folder.ts'
import { PostgresEngine } from './postgres-engine.ts'
import { type S3Engine, startS3Engine } from './s3-engine.ts'

/** What stands between a server and its engines. */
export interface Between {
  /** The port at which the server finds PostgreSQL. */
  readonly postgresPort?: number
  /** The address at which it finds the S3 store. */
  readonly s3Endpoint?: string
  /** Of one call of PostgreSQL. */
  readonly callTimeoutMs?: number
  /** Of one attempt at the S3 store; a call makes several. */
  readonly s3AttemptTimeoutMs?: number
}

/** PostgreSQL and an S3 store for the cases of one file. */
export class CaseEngines {
  readonly postgres: PostgresEngine
  readonly s3: S3Engine

  private constructor(postgres: PostgresEngine, s3: S3Engine) {
    this.postgres = postgres
    this.s3 = s3
  }

  static async start(ending: Ending): Promise<CaseEngines> {
    return new CaseEngines(...(await Promise.all([PostgresEngine.start(ending), startS3Engine(ending)])))
  }

  /** An empty storage. What it returns opens it once more, as another server does. */
  newPlace(): (between?: Between) => StorageBackend {
    const name = `case_${randomBytes(6).toString('hex')}`
    return ({ postgresPort = this.postgres.port, s3Endpoint, callTimeoutMs, s3AttemptTimeoutMs }: Between = {}) =>
      combinedBackend({
        records: postgresRecords({
          connectionString: this.postgres.url('postgres', postgresPort),
          schema: name,
          connectionsMax: 4,
          ...(callTimeoutMs === undefined ? {} : { callTimeoutMs }),
        }),
        blobs: s3Blobs({
          ...this.s3.options,
          prefix: `${name}/`,
          ...(s3Endpoint === undefined ? {} : { endpoint: s3Endpoint }),
          ...(s3AttemptTimeoutMs === undefined ? {} : { timeoutMs: s3AttemptTimeoutMs }),
        }),
      })
  }
}
