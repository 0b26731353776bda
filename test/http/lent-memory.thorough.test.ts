import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import type { ObjectService } from '../../src/index.ts'
import type { BlobStore, StorageBackend } from '../../src/storage/index.ts'
import { temporaryFolder } from '../support/folder.ts'
import { countLent } from '../support/lent.ts'
import { blockUpload, bodyOf, inBlocks } from '../support/ready-blocks.ts'
import { behindPort, jsonUpload, openService } from './served.ts'

/** Their texts hardly compress, so an answer takes several reads of 1 MB. */
const OBJECTS = 1_200
const TEXT_BYTES = 3_000
const DOWNLOADS = 8
const ROUNDS = 2
const LINES = { headers: { Accept: 'text/plain', 'Accept-Encoding': 'gzip' } }
const LARGE_BYTES_MIN = 100_000

test('answers are whole while the memory of their reads is used again', async (t) => {
  const { backend, reads } = watched(filesystemBackend({ path: temporaryFolder(t) }))
  const service = openService({ backend })
  const { url } = await behindPort(t, service)
  const expected = await Promise.all(['a', 'b'].map((name) => uploaded(service, name)))
  for (let round = 0; round < ROUNDS; round++) {
    const answers = await Promise.all(
      Array.from({ length: DOWNLOADS }, (_, number) => download(`${url}/objects/p/${['a', 'b'][number % 2]}`)),
    )
    for (const [number, answer] of answers.entries())
      assert.ok(answer === expected[number % 2], `download ${number} of round ${round}`)
  }
  assert.ok(reads.length > 2 * DOWNLOADS * ROUNDS, `${reads.length} reads`)
  assert.ok(new Set(reads).size < reads.length * 0.8, `${reads.length} reads into ${new Set(reads).size} buffers`)
})

test('answers that are inflated are whole in every form while memory is used again', async (t) => {
  const service = openService({ backend: filesystemBackend({ path: temporaryFolder(t) }) })
  const { url } = await behindPort(t, service)
  const lines = await Promise.all(['a', 'b'].map((name) => uploaded(service, name)))
  const arrays = await Promise.all(
    ['a', 'b'].map(async (name) => (await service.fetch(new Request(`http://x/objects/p/${name}`))).text()),
  )
  for (const [at, array] of arrays.entries()) assert.equal(linesOfArray(array), lines[at])
  const inOneForm = async (number: number): Promise<void> => {
    const [root, format, coding] = [number % 2, (number >> 1) % 2, (number >> 2) % 2]
    const headers = {
      Accept: ['text/plain', 'application/json'][format],
      'Accept-Encoding': ['identity', 'gzip'][coding],
    }
    const answer = await fetch(`${url}/objects/p/${['a', 'b'][root]}`, { headers })
    const text = await answer.text()
    const what = `download ${number}: ${headers.Accept} in ${headers['Accept-Encoding']}`
    assert.equal(answer.status, 200, `${what}: ${text.slice(0, 500)}`)
    const expected = [lines, arrays][format][root]
    const isRight = (format === 0 ? linesOf(text) : text) === expected
    assert.ok(isRight, `${what}: ${text.length} characters, ${expected.length} expected`)
  }
  for (let round = 0; round < ROUNDS; round++)
    await Promise.all(Array.from({ length: 2 * DOWNLOADS }, (_, number) => inOneForm(number)))
})

test('uploads give all memory back that they were lent', async (t) => {
  const counted = countLent(t)
  const objects = Array.from({ length: OBJECTS }, (_, i) => ({
    id: `object-${i}`,
    children: Array.from({ length: 40 }, (__, k) => ({ referencedId: `object-${(i * 41 + k) % OBJECTS}` })),
  }))
  const uploads = {
    JSON: jsonUpload(objects),
    'ready blocks': blockUpload(bodyOf(inBlocks(objects.map((object) => JSON.stringify(object))))),
  }
  for (const [form, upload] of Object.entries(uploads)) {
    const service = openService({ backend: filesystemBackend({ path: temporaryFolder(t) }) })
    const answer = await service.fetch(new Request('http://in.process/objects/p', upload))
    assert.ok(answer.ok, await answer.text())
    assert.ok(counted.bytes > 1_000_000, `${form}: ${counted.bytes} bytes were lent`)
    assert.equal(counted.outBytes, 0, form)
    await service.close()
  }
})

test('a host that keeps what is written to a response keeps it unchanged', async (t) => {
  const { backend, reads } = watched(filesystemBackend({ path: temporaryFolder(t) }))
  const service = openService({ backend })
  const kept: Uint8Array[][] = []
  const { url } = await behindPort(t, service, (res) => {
    const chunks: Uint8Array[] = []
    kept.push(chunks)
    const write = res.write.bind(res) as (chunk: Uint8Array, callback: () => void) => boolean
    Object.assign(res, {
      write: (chunk: Uint8Array, callback: () => void) => {
        chunks.push(chunk)
        return write(chunk, callback)
      },
    })
  })
  const expected = await uploaded(service, 'a')
  // Its first download was copied for its host.
  reads.length = 0
  for (let round = 0; round < ROUNDS; round++) await download(`${url}/objects/p/a`)
  assert.equal(kept.length, ROUNDS)
  for (const chunks of kept) assert.ok(linesOf(gunzipSync(Buffer.concat(chunks)).toString()) === expected)
  assert.equal(new Set(reads).size, reads.length)
})

test('a fetch host may transfer the chunks of a response, and gets them unchanged', async (t) => {
  const service = openService({ backend: filesystemBackend({ path: temporaryFolder(t) }) })
  const expected = await uploaded(service, 'a')
  for (let round = 0; round < ROUNDS; round++) {
    const answer = await service.fetch(new Request('http://x/objects/p/a', LINES))
    const chunks: Uint8Array[] = []
    for await (const chunk of answer.body as unknown as AsyncIterable<Uint8Array<ArrayBuffer>>)
      chunks.push(structuredClone(chunk, { transfer: [chunk.buffer] }))
    const body = Buffer.concat(chunks)
    const lines = answer.headers.get('content-encoding') === 'gzip' ? gunzipSync(body) : body
    assert.ok(linesOf(lines.toString()) === expected)
  }
  await service.close()
})

/** Uploads a root with objects below it. Resolves to the lines of the whole. */
async function uploaded(service: ObjectService, rootId: string): Promise<string> {
  const objects = Array.from({ length: OBJECTS }, (_, number) => ({
    id: `${rootId}-${number}`,
    text: randomBytes(TEXT_BYTES / 2).toString('base64'),
  }))
  const root = { id: rootId, parts: objects.map(({ id }) => ({ referencedId: id })) }
  const answer = await service.fetch(new Request('http://x/objects/p', jsonUpload([root, ...objects])))
  assert.equal(answer.status, 200)
  const lines = [root, ...objects].map((object) => `${object.id}\t${JSON.stringify(object)}\n`)
  // The first download makes the plan.
  await (await service.fetch(new Request(`http://x/objects/p/${rootId}`, LINES))).arrayBuffer()
  return sorted(lines)
}

function sorted(lines: readonly string[]): string {
  return lines.toSorted().join('')
}

/** The lines of an answer that travels as gzip. */
async function download(url: string): Promise<string> {
  const answer = await fetch(url, LINES)
  assert.equal(answer.status, 200)
  return linesOf(await answer.text())
}

function linesOf(text: string): string {
  return sorted(text.split(/(?<=\n)/))
}

/** What the lines would be of which this is the array. */
function linesOfArray(array: string): string {
  const objects = JSON.parse(array) as readonly { readonly id: string }[]
  return sorted(objects.map((object) => `${object.id}\t${JSON.stringify(object)}\n`))
}

/** The same storage, and the memory of each large read. */
function watched(inner: StorageBackend): { backend: StorageBackend; reads: ArrayBufferLike[] } {
  const { blobs } = inner
  const reads: ArrayBufferLike[] = []
  const watchedBlobs: BlobStore = {
    get readBytesPreferred() {
      return blobs.readBytesPreferred
    },
    put: (...given) => blobs.put(...given),
    read: async (...given) => {
      const bytes = await blobs.read(...given)
      if (bytes.length > LARGE_BYTES_MIN) reads.push(bytes.buffer)
      return bytes
    },
    remove: (names) => blobs.remove(names),
    list: (...given) => blobs.list(...given),
    close: () => blobs.close(),
  }
  return { backend: { records: inner.records, blobs: watchedBlobs, close: () => inner.close() }, reads }
}
