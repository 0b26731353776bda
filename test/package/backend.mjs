import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createObjectService, openAccess } from 'stowage'
import { blobStoreConformance, recordStoreConformance } from 'stowage/conformance'
import { lmdbBackend } from './lmdb-backend.mjs'

/* Runs in a project that has the packed package alone: a service on the backend of docs/backends.md, and what the suites say of a broken one. */

async function fiveEndpoints() {
  const service = createObjectService({ backend: lmdbBackend({ path: 'service-data' }), access: openAccess() })
  const server = createServer(service.node).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${server.address().port}`
  const ask = async (path, body) => {
    const headers = { 'Content-Type': 'application/json', Accept: 'text/plain' }
    const response = await fetch(`${url}${path}`, body === undefined ? { headers } : { method: 'POST', headers, body })
    assert.equal(response.status, 200, path)
    return response.text()
  }
  const child = '{"id":"child","text":"below"}'
  const root = '{"id":"root","__closure":{"child":1},"part":{"referencedId":"child"}}'
  assert.match(await ask('/objects/demo', `[${root},${child}]`), /"created":2/)
  const list = JSON.stringify({ objects: JSON.stringify(['root', 'missing']) })
  assert.deepEqual(JSON.parse(await ask('/api/diff/demo', list)), { root: true, missing: false })
  assert.equal(await ask('/objects/demo/child/single'), child)
  const ids = JSON.stringify({ objects: JSON.stringify(['child']) })
  assert.equal((await ask('/api/getobjects/demo', ids)).trim(), `child\t${child}`)
  const graph = (await ask('/objects/demo/root')).trim().split('\n')
  assert.deepEqual(graph.toSorted(), [`child\t${child}`, `root\t${root}`])
  server.close()
  server.closeAllConnections()
  await service.close()
}

/** The backend with one place of its source changed. */
async function planted(name, from, to) {
  const source = readFileSync('lmdb-backend.mjs', 'utf8')
  assert.equal(source.split(from).length, 2, `the page has exactly one ${from}`)
  writeFileSync(`${name}.mjs`, source.replace(from, to))
  const { lmdbBackend: broken } = await import(`./${name}.mjs`)
  return () => broken({ path: `${name}-data` })
}

async function failuresOf(cases) {
  const failures = new Map()
  for (const { name, run } of cases) {
    try {
      await run()
    } catch (error) {
      failures.set(name, error.message)
    }
  }
  return failures
}

function assertFails(failures, name, message) {
  assert.match(failures.get(name) ?? `"${name}" passes; these fail: ${[...failures.keys()].join('; ')}`, message)
}

await fiveEndpoints()

const overwriting = await planted('overwriting', 'if (held === undefined) db.putSync', 'db.putSync')
const records = await failuresOf(recordStoreConformance(() => overwriting().records, { timeoutMs: 20_000 }))
const order = 'insertMany: returns undefined for inserted entries and the existing value otherwise, in order'
assertFails(
  records,
  order,
  /the stored value, which insertMany never overwrites: must be 'old', but is 'new'[^]*insertMany\(\[/,
)
assertFails(records, 'insertMany: inserts the first of two entries with one key in a call', /must be[^]*"first"/)

const repeating = await planted(
  'repeating',
  'start = Buffer.concat([batch.at(-1).key, Buffer.of(0)])',
  'start = batch.at(-1).key',
)
const lists = blobStoreConformance(() => repeating().blobs, { timeoutMs: 20_000 }).filter(({ name }) =>
  name.startsWith('list: returns more than'),
)
assertFails(await failuresOf(lists), lists[0].name, /the list gave \S+ twice; it must give each blob exactly once/)

const short = await planted('short', 'return bytes\n', 'return bytes.subarray(1)\n')
const reads = blobStoreConformance(() => short().blobs, { timeoutMs: 20_000 }).filter(({ name }) =>
  name.startsWith('read: returns exactly'),
)
assertFails(await failuresOf(reads), reads[0].name, /a read of blob \S+ from byte 0 to 1 gave 0 bytes; it must give 1/)
process.stdout.write(`a backend made outside, under ${process.version}: five endpoints, and three planted bugs found\n`)
