import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sharedBackend } from '../../src/cli/common/shared-storage.ts'
import { blobsAt, recordsAt, withoutPassword } from '../../src/cli/common/storage-address.ts'

async function blobsOf(address: string): Promise<string> {
  const { store, place } = await blobsAt({ address, option: '--to-blobs' })
  await store.close()
  return `${place}, ${store.place}`
}

test('messages show no part of a password, whatever characters it has', () => {
  for (const password of [
    'secret',
    'se@cret',
    'se@c:r@et',
    'se/c@ret',
    'se?c@ret',
    'se#c@ret',
    '12/3@4',
    's%40ecret',
  ]) {
    const shown = withoutPassword(`postgres://ada:${password}@db.example:5433/house?application_name=x`)
    assert.equal(shown, 'postgres://ada@db.example:5433/house', password)
  }
  for (const address of ['postgres://ada@db.example/house', 's3://models/stowage', 'level:./records'])
    assert.equal(withoutPassword(address), address)
  assert.equal(withoutPassword('postgres://db.example/house?password=secret'), 'postgres://db.example/house')
  assert.equal(withoutPassword('s3://models/a?endpoint=https://a@b'), 's3://models/a')
})

test('an address of blobs has the parameters of the S3 store', async () => {
  assert.equal(
    await blobsOf('s3://models/house?region=eu-central-1'),
    's3://models/house, bucket models at https://s3.eu-central-1.amazonaws.com',
  )
  assert.equal(
    await blobsOf('s3://models?endpoint=http://s3.example:9000&http=allowed&addressing=path'),
    's3://models/, bucket models at http://s3.example:9000',
  )
})

test('errors about an address name the option, and what the address must say', async () => {
  const refused: readonly [address: string, message: RegExp][] = [
    [
      's3://models?endpoint=http://s3.example',
      /^--to-blobs: http:\/\/s3\.example would send all data in the clear: use https:, or add &http=allowed$/,
    ],
    ['s3://models?http=yes', /^--to-blobs has http="yes"; it must be allowed$/],
    ['s3://models?addressing=x', /^--to-blobs has addressing="x"; it must be path or host$/],
    ['s3://models?bucket=x', /^--to-blobs has the parameter "bucket"; it may have endpoint, region, addressing, http$/],
    ['s3://models?endpoint=s3.example', /^--to-blobs: the endpoint is "s3\.example"; it must be an https: address$/],
    ['s3://Models:x', /^--to-blobs: "s3:\/\/Models:x" is not an address; it must be like s3:\/\/bucket/],
    ['s3://m', /^--to-blobs: "m" is not the name of an S3 bucket$/],
  ]
  for (const [address, message] of refused) await assert.rejects(blobsOf(address), { message })
  const records = (address: string): Promise<unknown> => recordsAt({ address, option: '--records' })
  await assert.rejects(records('postgres://a:b@c/d?schema=A'), { message: /^--records: "A" is no name of a schema/ })
  await assert.rejects(records('postgres://a:secret@:x/'), {
    message:
      '--records: "postgres://a@:x/" is not an address; it must be like postgres://user@host/database or level:<folder>',
  })
})

test('without keys for the S3 store, the error names the variables', async (t) => {
  for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']) {
    const before = process.env[name]
    delete process.env[name]
    t.after(() => {
      if (before !== undefined) process.env[name] = before
    })
  }
  const { store } = await blobsAt({ address: 's3://models', option: '--blobs' })
  t.after(() => store.close())
  await assert.rejects(store.ready?.() ?? Promise.resolve(), {
    message:
      'there are no credentials for the S3 store: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment',
  })
})

test('the halves of the source and of the target of a copy are named by their own options', async () => {
  const halves = { records: 'level:records', blobs: 's3://models?http=x' }
  await assert.rejects(sharedBackend({ data: '', side: 'from', ...halves }), { message: /^--from-blobs has http=/ })
  await assert.rejects(sharedBackend({ data: '', ...halves }), { message: /^--blobs has http=/ })
})
