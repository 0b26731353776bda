import { after, describe } from 'node:test'
import { postgresRecords } from '../../adapters/postgres/index.ts'
import type { RecordStore } from '../../src/storage/backend.ts'
import { recordStoreConformance } from '../../src/storage/conformance/index.ts'
import { CuttingProxy } from './cutting-proxy.ts'
import { PostgresEngine } from './postgres-engine.ts'
import { testEveryCase } from './suite.ts'

const engine = await PostgresEngine.start({ after })
const proxy = await CuttingProxy.start({ after }, engine.port)

function open(): RecordStore {
  return postgresRecords({ connectionString: engine.url('postgres', proxy.port), connectionsMax: 4 })
}

async function restart(): Promise<void> {
  await engine.kill()
  await engine.restart()
}

describe('records in PostgreSQL', () => {
  const faults = { cutAt: (message: number) => proxy.cutAt(message), restart }
  testEveryCase(recordStoreConformance(open, { openTwo: () => [open(), open()], faults }))
})
