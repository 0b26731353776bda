import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { Client } from 'pg'
import type { Connection } from '../../adapters/postgres/connections.ts'
import { postgresRecords } from '../../adapters/postgres/index.ts'
import { prepareSchema } from '../../adapters/postgres/migration.ts'
import { SCHEMA_STEPS, type SchemaStep } from '../../adapters/postgres/schema.ts'
import type { StowageError } from '../../src/errors.ts'
import type { Entry, RecordStore } from '../../src/storage/backend.ts'
import { key, text } from '../adapters/support.ts'
import type { Ending } from '../support/folder.ts'
import { eventually } from '../support/patience.ts'
import { PostgresEngine } from './postgres-engine.ts'

/* A schema that a newer release brings to its own version, while servers of this one use it. */

const SERVERS = 6
const ENTRY: Entry = { key: key('a'), value: key('held') }
const engine = await PostgresEngine.start({ after }, { settings: { fsync: 'off' } })

/** Two steps that only add, each of which shows how often it was made. */
const ADDING: readonly SchemaStep[] = [
  { version: 2, usableFrom: 1, statements: (of) => [`CREATE TABLE ${of}.made (step integer)`, madeBy(of, 2)] },
  { version: 3, usableFrom: 1, statements: (of) => [madeBy(of, 3)] },
]
/** A step that this release cannot follow. It notes what it finds. */
const BREAKING: SchemaStep = {
  version: 2,
  usableFrom: 2,
  statements: (of) => [
    `CREATE TABLE ${of}.found AS SELECT count(*)::integer AS records FROM ${of}.records`,
    `CREATE FUNCTION ${of}.count_records_2() RETURNS integer LANGUAGE sql AS $$ SELECT records FROM ${of}.found $$`,
  ],
}

function madeBy(of: string, step: number): string {
  return `INSERT INTO ${of}.made VALUES (${step})`
}

interface Place {
  readonly schema: string
  readonly records: RecordStore
  readonly client: Client
}

/** A schema of this release with one record, and a server that uses it. */
async function newPlace(t: Ending): Promise<Place> {
  const schema = `s_${randomBytes(6).toString('hex')}`
  const records = open(t, schema)
  await records.insertMany([ENTRY])
  return { schema, records, client: await connected(t) }
}

function open(t: Ending, schema: string): RecordStore {
  const records = postgresRecords({ connectionString: engine.url(), schema })
  t.after(() => records.close())
  return records
}

async function connected(t: Ending): Promise<Client> {
  const client = new Client(engine.url())
  await client.connect()
  t.after(() => client.end())
  return client
}

/** The newer release. */
async function migrate(t: Ending, schema: string, steps: readonly SchemaStep[]): Promise<void> {
  const client = await connected(t)
  const connection: Connection = {
    query: async (statement, values) => (await client.query(statement, values === undefined ? [] : [...values])).rows,
  }
  await prepareSchema(connection, schema, [...SCHEMA_STEPS, ...steps])
}

async function rowsOf({ client, schema }: Place, query: string): Promise<readonly unknown[]> {
  return (await client.query({ text: query.replace('SCHEMA', schema), rowMode: 'array' })).rows
}

const versionOf = (place: Place): Promise<readonly unknown[]> =>
  rowsOf(place, 'SELECT version, usable_from FROM SCHEMA.schema_version')

test('steps that only add are made once by servers that start at once, and older servers go on', async (t) => {
  const place = await newPlace(t)
  await Promise.all(Array.from({ length: SERVERS }, () => migrate(t, place.schema, ADDING)))
  assert.deepEqual(await versionOf(place), [[3, 1]])
  assert.deepEqual(await rowsOf(place, 'SELECT step FROM SCHEMA.made ORDER BY step'), [[2], [3]])
  for (const records of [place.records, open(t, place.schema)]) {
    assert.equal(text((await records.getMany([ENTRY.key]))[0]), 'held')
    assert.ok((await records.commit({ put: [ENTRY] })).ok)
  }
})

test('a new schema goes through all steps, too', async (t) => {
  const place = { ...(await newPlace(t)), schema: `s_${randomBytes(6).toString('hex')}` }
  await Promise.all(Array.from({ length: SERVERS }, () => migrate(t, place.schema, ADDING)))
  assert.deepEqual(await versionOf(place), [[3, 1]])
})

test('a step that fails leaves the version before it, and is made at the next start', async (t) => {
  const place = await newPlace(t)
  const failing = { ...ADDING[1], statements: (of: string) => [madeBy(of, 3), `SELECT 1 FROM ${of}.nothing`] }
  await assert.rejects(migrate(t, place.schema, [ADDING[0], failing]), /nothing/)
  assert.deepEqual(await versionOf(place), [[2, 1]])
  assert.deepEqual(await rowsOf(place, 'SELECT step FROM SCHEMA.made'), [[2]])
  await migrate(t, place.schema, ADDING)
  assert.deepEqual(await versionOf(place), [[3, 1]])
})

test('before a step that older servers cannot follow, their calls end, and later ones are refused with the reason', async (t) => {
  const place = await newPlace(t)
  const { schema, records, client } = place
  // A call of an older server that waits for a lock when the newer release begins.
  await client.query('BEGIN')
  await client.query(`SELECT * FROM ${schema}.records WHERE key = $1 FOR UPDATE`, [ENTRY.key])
  const late = records.commit({ put: [{ key: key('b'), value: key('late') }], expect: [ENTRY] })
  const waiting = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%${schema}%'`
  const observer = { ...place, client: await connected(t) }
  await eventually(async () => (await rowsOf(observer, waiting)).length === 1, 'the commit waits')
  const migrating = migrate(t, schema, [BREAKING])
  await eventually(async () => (await rowsOf(observer, waiting)).length === 2, 'the step waits for the commit')
  const isRefused = (error: unknown): boolean => {
    const { code, cause } = error as StowageError
    assert.equal(code, 'storage_unavailable')
    assert.match(String(cause), /can be used from version 2 on; this release uses version 1/)
    return true
  }
  const refused = async (): Promise<void> => {
    await assert.rejects(records.getMany([ENTRY.key]), isRefused)
    await assert.rejects(records.insertMany([ENTRY]), isRefused)
    await assert.rejects(records.commit({ put: [ENTRY] }), isRefused)
    const range = records.range({ gte: key('a'), lt: key('b') })[Symbol.asyncIterator]()
    await assert.rejects(range.next(), isRefused)
  }
  await refused()
  await client.query('COMMIT')
  assert.deepEqual(await late, { ok: true })
  await migrating
  assert.deepEqual(await versionOf(place), [[2, 2]])
  assert.deepEqual(await rowsOf(place, 'SELECT SCHEMA.count_records_2()'), [[2]], 'the step saw the last commit')
  await refused()
  const other = open(t, schema)
  await assert.rejects(other.ready?.() ?? Promise.resolve(), /this release uses version 1; nothing was changed/)
})

test('a version to which no step leads, and a damaged one, are refused and left as they are', async (t) => {
  const place = await newPlace(t)
  const { schema, client } = place
  const refuses = async (message: RegExp): Promise<void> => {
    const records = open(t, schema)
    await assert.rejects(records.ready?.() ?? Promise.resolve(), message)
  }
  await client.query(`UPDATE ${schema}.schema_version SET version = 0, usable_from = 0`)
  await refuses(/has version 0; this release uses version 1, and brings schemas from version 1 on to it; nothing was/)
  assert.deepEqual(await versionOf(place), [[0, 0]])
  await client.query(`INSERT INTO ${schema}.schema_version VALUES (1, 1)`)
  await refuses(/schema_version is damaged: it must hold one row with the version/)
  await client.query(`DELETE FROM ${schema}.schema_version`)
  await refuses(/schema_version is damaged/)
})
