import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addressOf } from '../../adapters/postgres/connection-options.ts'
import { postgresRecords } from '../../adapters/postgres/index.ts'
import { byteaArray, framedValues } from '../../adapters/postgres/wire-values.ts'

test('outside localhost the connection is encrypted, unless the address decides', () => {
  for (const host of ['db.example', '10.0.0.7', '[2001:db8::1]', 'localhost.example', '128.0.0.1'])
    assert.equal(addressOf(`postgres://u:p@${host}/d`).needsTls, true, host)
  for (const host of ['localhost', '127.0.0.1', '127.1.2.3', '[::1]', 'LOCALHOST'])
    assert.equal(addressOf(`postgres://u:p@${host}/d`).needsTls, false, host)
  assert.equal(addressOf('postgres://u:p@/d?host=/var/run/postgresql').needsTls, false)
  assert.equal(addressOf('postgres://u:p@localhost/d?host=db.example').needsTls, true)
  assert.equal(addressOf('postgres://u:p@db.example/d?sslmode=disable').needsTls, false)
})

test('neither the place nor an error repeats a password', () => {
  const { place } = postgresRecords({ connectionString: 'postgres://user:secret@db.example:6543/data', schema: 'two' })
  assert.equal(place, 'PostgreSQL at db.example:6543/data, schema two')
  for (const connectionString of ['postgres://user:secret@:x/', 'mysql://user:secret@host/d', 'host=x password=secret'])
    assert.throws(
      () => postgresRecords({ connectionString }),
      (error) =>
        error instanceof TypeError && !error.message.includes('secret') && error.message.includes('postgres://'),
    )
})

test('names of schemas that would need quotes are refused, and so are both ways to a database at once', () => {
  const connectionString = 'postgres://localhost/d'
  for (const schema of ['', 'A', 'a b', 'a"b', '1a', 'pg_temp', 'a'.repeat(64)])
    assert.throws(() => postgresRecords({ connectionString, schema }), RangeError)
  assert.throws(() => postgresRecords({}), /exactly one of connectionString and pool/)
  const [on, removeListener] = [() => undefined, () => undefined]
  const pool = { connect: () => Promise.reject(new Error('not asked for')), on, removeListener }
  assert.throws(() => postgresRecords({ connectionString, pool }), /exactly one of connectionString and pool/)
})

test('arrays go out in the binary format of PostgreSQL', () => {
  const array = byteaArray([Buffer.from('ab'), undefined, Buffer.alloc(0)])
  const expected = [
    '00000001',
    '00000001',
    '00000011',
    '00000003',
    '00000001',
    '00000002',
    '6162',
    'ffffffff',
    '00000000',
  ]
  assert.equal(array.toString('hex'), expected.join(''))
})

test('framed values are copies, and an answer that is cut off is an error', () => {
  const frame = Buffer.from('000000026162fffffffe00000000', 'hex')
  const [first, mark, empty] = [...framedValues(frame)]
  assert.deepEqual([Buffer.from(first as Uint8Array).toString(), mark, (empty as Uint8Array).length], ['ab', -2, 0])
  frame.fill(0)
  assert.equal(Buffer.from(first as Uint8Array).toString(), 'ab')
  assert.throws(() => [...framedValues(Buffer.from('0000000561', 'hex'))], /cut off/)
})
