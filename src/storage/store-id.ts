import { type Environment, REAL_ENVIRONMENT } from '../environment.ts'
import { StowageError } from '../errors.ts'
import type { RecordStore } from './backend.ts'

/** No kind of record has this name, and none begins with it. */
const STORE_KEY: Uint8Array = Buffer.from('store\0')
const STORE_ID = /^[0-9a-f]{32}$/

/**
 * The id of a storage: 32 hex digits, drawn when it is asked for first. It stays when servers restart and when the
 * storage is copied, and a restore sets that of the storage that was backed up. So it names the data, not a place.
 */
export async function storeId(
  records: RecordStore,
  environment: Pick<Environment, 'randomBytes'> = REAL_ENVIRONMENT,
): Promise<string> {
  const [held] = await records.getMany([STORE_KEY])
  if (held !== undefined) return decoded(held)
  const value = Buffer.from(Buffer.from(environment.randomBytes(16)).toString('hex'))
  // Of several servers that draw one at a time, the first decides.
  const [found] = await records.insertMany([{ key: STORE_KEY, value }])
  return decoded(found ?? value)
}

/** Makes a new storage one with the data of another. */
export async function setStoreId(records: RecordStore, id: string): Promise<void> {
  await records.commit({ put: [{ key: STORE_KEY, value: Buffer.from(id) }] })
}

function decoded(value: Uint8Array): string {
  const id = Buffer.from(value).toString('latin1')
  if (STORE_ID.test(id)) return id
  throw new StowageError('corrupt_data', 'the record with the id of the storage is damaged')
}
