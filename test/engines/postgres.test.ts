import { after, describe, test } from 'node:test'
import { postgresRecords } from '../../adapters/postgres/index.ts'
import { recordStoreConformance } from '../../src/storage/conformance/index.ts'
import { PostgresEngine } from './postgres-engine.ts'

const engine = await PostgresEngine.start({ after }, { fsync: 'off' })

describe('records in PostgreSQL', () => {
  const open = (): ReturnType<typeof postgresRecords> => postgresRecords({ connectionString: engine.url() })
  for (const { name, run } of recordStoreConformance(open)) test(name, run)
})
