import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'node:test'
import { Pool } from 'pg'
import { postgresRecords } from '../../adapters/postgres/index.ts'

/* What a server may say, in messages of its protocol: a letter, the length of what follows, and the fields. */
const READY = [message('R', Buffer.alloc(4)), message('Z', Buffer.from('I'))]
const ENDS = message(
  'E',
  Buffer.from('SFATAL\0VFATAL\0C57P01\0Mterminating connection due to unexpected postmaster exit\0\0'),
)

for (const [name, isOfHost] of [
  ['of the adapter', false],
  ['of the host', true],
] as const)
  test(`a connection that is ready and ends in one breath fails its call only, in a pool ${name}`, async (t) => {
    // An error that nobody listens for would end the process, and so this test.
    const server = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () => socket.end(Buffer.concat([...READY, ENDS])))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => server.close())
    const { port } = server.address() as AddressInfo
    const connectionString = `postgres://user@127.0.0.1:${port}/data`
    const pool = isOfHost ? new Pool({ connectionString }) : undefined
    t.after(() => pool?.end())
    const records = postgresRecords(pool === undefined ? { connectionString } : { pool })
    t.after(() => records.close())
    await assert.rejects(records.ready?.() ?? Promise.resolve(), /unexpected postmaster exit/)
    assert.equal(pool?.listenerCount('connect') ?? 0, 0, 'nothing stays behind')
  })

function message(letter: string, fields: Buffer): Buffer {
  const length = Buffer.alloc(4)
  length.writeInt32BE(length.length + fields.length)
  return Buffer.concat([Buffer.from(letter), length, fields])
}
