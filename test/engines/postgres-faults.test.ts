import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Client, Pool } from 'pg'
import { postgresRecords, type PostgresRecordsOptions } from '../../adapters/postgres/index.ts'
import type { Entry, RecordStore } from '../../src/storage/backend.ts'
import type { StowageError } from '../../src/errors.ts'
import { key, text } from '../adapters/support.ts'
import { CuttingProxy } from './cutting-proxy.ts'
import { freePort } from '../../bench/free-port.ts'
import { PostgresEngine } from './postgres-engine.ts'

const engine = await PostgresEngine.start({ after }, { settings: { fsync: 'off' } })
const proxy = await CuttingProxy.start({ after }, engine.port)
const ENTRY: Entry = { key: key('a'), value: key('held') }

function freshSchema(): string {
  return `s_${randomBytes(6).toString('hex')}`
}

async function using<T>(options: PostgresRecordsOptions, use: (records: RecordStore) => Promise<T>): Promise<T> {
  const records = postgresRecords(options)
  try {
    return await use(records)
  } finally {
    await records.close()
  }
}

async function withClient<T>(use: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client(engine.url())
  client.on('error', () => undefined)
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + 30_000
  while (!(await holds())) {
    assert.ok(performance.now() < endMs, what)
    await delay(5)
  }
}

const hasCode = (code: string) => (error: unknown) => (error as StowageError).code === code

/** Runs `use` while somebody else holds the lock of the entry's row. */
async function whileLocked(schema: string, use: (isWaiting: () => Promise<boolean>) => Promise<void>): Promise<void> {
  await withClient(async (client) => {
    await client.query('BEGIN')
    await client.query(`SELECT * FROM ${schema}.records WHERE key = $1 FOR UPDATE`, [ENTRY.key])
    const waiting = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%${schema}%'`
    await use(() => withClient(async (other) => (await other.query(waiting)).rows.length > 0))
    await client.query('ROLLBACK')
  })
}

test('servers that start at once make one schema, and another schema has other records', async () => {
  const schema = freshSchema()
  const options = { connectionString: engine.url(), schema }
  const servers = Array.from({ length: 6 }, () => postgresRecords(options))
  await Promise.all(servers.map(async (server) => server.ready?.()))
  await servers[0].insertMany([ENTRY])
  assert.equal(text((await servers[5].getMany([ENTRY.key]))[0]), 'held')
  await Promise.all(servers.map((server) => server.close()))
  await using({ ...options, schema: freshSchema() }, async (records) => {
    assert.deepEqual(await records.getMany([ENTRY.key]), [undefined])
  })
})

test('a schema of a newer release is refused unless it can still be used', async () => {
  const options = { connectionString: engine.url(), schema: freshSchema() }
  await using(options, async (records) => records.ready?.())
  const version = (at: number, usableFrom: number): Promise<unknown> =>
    withClient((client) =>
      client.query(`UPDATE ${options.schema}.schema_version SET version = ${at}, usable_from = ${usableFrom}`),
    )
  await version(2, 1)
  await using(options, async (records) => records.ready?.())
  await version(2, 2)
  await assert.rejects(
    using(options, async (records) => records.ready?.()),
    /version 2.*this release uses version 1; nothing was changed/,
  )
})

test('synchronous_commit = off and other isolation than READ COMMITTED are refused', async () => {
  const url = (setting: string): string => `${engine.url()}?options=${encodeURIComponent(`-c ${setting}`)}`
  const opening = (setting: string): Promise<void> =>
    using({ connectionString: url(setting), schema: freshSchema() }, async (records) => records.ready?.())
  await assert.rejects(opening('synchronous_commit=off'), /synchronous_commit is off.*set it to on/)
  await assert.rejects(opening('default_transaction_isolation=serializable'), /is serializable.*read committed/)
  await opening('synchronous_commit=local')
})

test('outside localhost a server without encryption is refused', async () => {
  // 0.0.0.0 leads to this machine, and is not a name of it.
  const connectionString = engine.url().replace('127.0.0.1', '0.0.0.0')
  await assert.rejects(
    using({ connectionString, startTimeoutMs: 0 }, async (records) => records.ready?.()),
    /does not support SSL/,
  )
  await using({ connectionString: `${connectionString}?sslmode=disable` }, async (records) => records.ready?.())
})

test('an aborted call rejects at once, and its connection is used again when PostgreSQL is done', async () => {
  const schema = freshSchema()
  await using({ connectionString: engine.url(), schema, connectionsMax: 1 }, async (records) => {
    await records.insertMany([ENTRY])
    await whileLocked(schema, async (isWaiting) => {
      const controller = new AbortController()
      const call = records.commit({ put: [{ ...ENTRY, value: key('late') }] }, { signal: controller.signal })
      const rejected = assert.rejects(call, /went away/)
      await until('the commit waits for the lock', isWaiting)
      controller.abort(new Error('the caller went away'))
      await rejected
      assert.ok(await isWaiting())
    })
    assert.equal((await records.getMany([ENTRY.key])).length, 1)
  })
})

test('a call that takes too long ends, whether PostgreSQL or the network keeps it', async () => {
  const schema = freshSchema()
  const options = {
    connectionString: engine.url('postgres', proxy.port),
    schema,
    connectionsMax: 1,
    callTimeoutMs: 1_000,
  }
  await using(options, async (records) => {
    await records.insertMany([ENTRY])
    await whileLocked(schema, async () => {
      await assert.rejects(records.commit({ put: [ENTRY] }), hasCode('storage_unavailable'))
    })
    assert.equal(text((await records.getMany([ENTRY.key]))[0]), 'held')
    proxy.stall()
    await assert.rejects(records.getMany([ENTRY.key]), hasCode('storage_unavailable'))
    await assert.rejects(records.getMany([ENTRY.key]), hasCode('storage_unavailable'))
    proxy.resume()
    await until('a call works again', () =>
      records.getMany([ENTRY.key]).then(
        () => true,
        () => false,
      ),
    )
  })
})

test('errors of PostgreSQL have the codes of the storage', async () => {
  const schema = freshSchema()
  await using({ connectionString: engine.url(), schema }, async (records) => {
    await records.ready?.()
    await withClient(async (client) => {
      await client.query(`CREATE FUNCTION ${schema}.fail() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = convert_from(NEW.key, 'UTF8'); END $$`)
      await client.query(
        `CREATE TRIGGER fail BEFORE INSERT ON ${schema}.records FOR EACH ROW EXECUTE FUNCTION ${schema}.fail()`,
      )
    })
    const failing = (code: string): Promise<unknown> => records.insertMany([{ key: key(code), value: key('') }])
    await assert.rejects(failing('53100'), hasCode('storage_full'))
    for (const code of ['40001', '40P01', '57014', '53300', '25006', 'XX000'])
      await assert.rejects(failing(code), hasCode('storage_unavailable'), code)
  })
})

test('a connection that the operator ends fails its call only, also while it is idle', async () => {
  const schema = freshSchema()
  const options = { connectionString: engine.url(), schema, connectionsMax: 2 }
  const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'stowage'`
  await using(options, async (records) => {
    await records.insertMany([ENTRY])
    await whileLocked(schema, async (isWaiting) => {
      const ended = assert.rejects(records.commit({ put: [ENTRY] }), hasCode('storage_unavailable'))
      await until('the commit waits for the lock', isWaiting)
      await withClient((client) => client.query(end))
      await ended
    })
    await until('a call works again', () =>
      records.getMany([ENTRY.key]).then(
        () => true,
        () => false,
      ),
    )
    await withClient((client) => client.query(end))
    await until('a call works again', () =>
      records.getMany([ENTRY.key]).then(
        () => true,
        () => false,
      ),
    )
    assert.equal(text((await records.getMany([ENTRY.key]))[0]), 'held')
  })
})

test('a pool of the host is used and stays open, and its broken connections do not end the process', async () => {
  const pool = new Pool({ connectionString: engine.url(), max: 2 })
  pool.on('error', () => undefined)
  await using({ pool, schema: freshSchema() }, async (records) => {
    await records.insertMany([ENTRY])
    assert.equal(text((await records.getMany([ENTRY.key]))[0]), 'held')
  })
  assert.equal((await pool.query('SELECT 1 AS one')).rows[0].one, 1)
  await pool.end()
})

test('calls read by the index, however large the table grows after the first call', async () => {
  const schema = freshSchema()
  await using({ connectionString: engine.url(), schema, connectionsMax: 1 }, async (records) => {
    for (let from = 0; from < 12_000; from += 1_000) {
      const entries = Array.from({ length: 1_000 }, (_, at) => ({ key: key(`k ${from + at}`), value: key('value') }))
      await records.insertMany(entries)
      await records.insertMany(entries.slice(0, 10))
      await records.getMany(entries.map((entry) => entry.key))
      await records.commit({ put: [entries[5]], remove: [entries[6].key], expect: [entries[7]] })
      for await (const batch of records.range({ gte: key('k 5'), lt: key('k 6'), limit: 10 }))
        assert.ok(batch.length > 0)
    }
  })
  const counts = `SELECT seq_tup_read FROM pg_stat_user_tables WHERE schemaname = '${schema}' AND relname = 'records'`
  await withClient(async (client) => {
    await client.query('SELECT pg_stat_clear_snapshot()')
    assert.equal(Number((await client.query(counts)).rows[0].seq_tup_read), 0)
  })
})

test('ready waits while PostgreSQL starts, and not longer than it may', async () => {
  const connectionString = `postgres://postgres@127.0.0.1:${await freePort()}/postgres`
  await assert.rejects(
    using({ connectionString, startTimeoutMs: 600 }, async (records) => records.ready?.()),
    /ECONNREFUSED/,
  )
  await engine.stop()
  const records = postgresRecords({ connectionString: engine.url(), schema: freshSchema() })
  const ready = records.ready?.()
  engine.launch()
  await ready
  await records.close()
})

test('a standby is refused', async () => {
  await engine.stop()
  await engine.becomeStandby(true)
  await engine.restart()
  await assert.rejects(
    using({ connectionString: engine.url() }, async (records) => records.ready?.()),
    /is a standby/,
  )
  await engine.stop()
  await engine.becomeStandby(false)
  await engine.restart()
  await using({ connectionString: engine.url() }, async (records) => records.ready?.())
})
