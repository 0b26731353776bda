import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { createObjectService, openAccess, type StorageBackend, type StowageError } from '../../src/index.ts'
import { errorOf, idList, jsonUpload } from '../http/served.ts'
import { openServers } from '../support/several-servers.ts'
import { accessOf, authorization, contractList, onEverySide, store, tokenFor, withHeaders } from './sides.ts'

/* The rules that hold everywhere, 7 to 9: projects are walls, no secrets and no foreign text, abort is normal. */

const everySide = onEverySide()

everySide('rule 7: "nothing is shared across projects, not even identical bytes"', async (side) => {
  const other = { ...side, project: `${side.project}-other` }
  const objects = [{ id: 'root', to: { referencedId: 'child' } }, { id: 'child' }]
  await store(side, objects)
  assert.deepEqual(await (await side.ask(`/api/diff/${other.project}`, contractList(['root', 'child']))).json(), {
    root: false,
    child: false,
  })
  assert.equal((await errorOf(await side.ask(`/objects/${other.project}/root`))).status, 404)
  assert.deepEqual(await (await side.ask(`/api/getobjects/${other.project}`, contractList(['child']))).json(), [])
  assert.deepEqual(await store(other, [objects[0]]), {
    objects: 1,
    created: 1,
    differing: 0,
    rewritten: 0,
    assigned: [],
    assignedCount: 0,
  })
  const answer = await side.ask(`/objects/${other.project}/root?have=child`)
  assert.deepEqual(
    [answer.headers.get('stowage-missing-objects'), await answer.json()],
    ['1', [objects[0]]],
    'references do not reach over',
  )
})

async function blobNames(backend: StorageBackend): Promise<string[]> {
  const names: string[] = []
  for await (const batch of backend.blobs.list('')) names.push(...batch.map(({ name }) => name))
  return names
}

test('rule 7: "a pack holds one project\'s objects from one request"; rule 8: "ids never become paths", blob names are <hex SHA-256 of the project>/<pack id>', async (t) => {
  const backend = memoryBackend()
  const service = createObjectService({ backend, access: openAccess() })
  t.after(() => service.close({ graceMs: 0 }))
  const objects = Array.from({ length: 4 }, (_, n) => ({ id: `../${n}`, data: randomBytes(40_000).toString('base64') }))
  const projects = ['..', 'a/../b', 'C:\\']
  for (const project of projects) {
    for (const half of [objects.slice(0, 2), objects.slice(2)]) {
      assert.equal(
        (
          await service.fetch(
            new Request(`http://x/objects/${encodeURIComponent(project).replaceAll('.', '%2E')}a`, jsonUpload(half)),
          )
        ).status,
        200,
      )
    }
  }
  const folders = projects.map((project) => createHash('sha256').update(`${project}a`).digest('hex'))
  const names = await blobNames(backend)
  assert.deepEqual(names.map((name) => name.slice(0, 64)).toSorted(), [...folders, ...folders].toSorted())
  for (const name of names) assert.match(name, /^[0-9a-f]{64}\/[0-9a-z.-]+$/)
})

const SECRET = 'hunter2-hunter2-hunter2'
const FOREIGN = 'line\nbreak \u001b[31m \u2028 </script>'

test('rule 8: "no secrets and no foreign text unescaped", in answers and in what the host is told', async (t) => {
  const told: string[] = []
  const secret = randomBytes(32)
  const service = openServers((backend) =>
    createObjectService({
      backend,
      access: accessOf(secret),
      onError: (error: StowageError) => told.push(error.message, String(error.cause)),
      logger: { error: (fields, message) => told.push(JSON.stringify(fields), message) },
    }),
  )
  t.after(() => service.close({ graceMs: 0 }))
  const token = await tokenFor(secret, { p: 'write' })
  const foreign = encodeURIComponent(FOREIGN)
  const bad = (type: string, body: string): RequestInit => ({ method: 'POST', headers: { 'Content-Type': type }, body })
  const requests: (readonly [string, RequestInit])[] = [
    [`/objects/p/${foreign}`, {}],
    [`/objects/${foreign}/a`, {}],
    [`/${foreign}`, {}],
    [`/objects/p/a?have=${foreign}`, {}],
    [`/objects/p/a?archive=${foreign}`, {}],
    ['/objects/p/<b>', {}],
    ['/objects/p', bad('application/json', JSON.stringify([{ id: FOREIGN }]))],
    ['/objects/p', bad('application/json', `[{"id":"<b>${SECRET}"},]`)],
    ['/objects/p', bad(`text/<b>`, '[]')],
    ['/objects/p', bad('multipart/form-data; boundary="<b>\u0080"', 'x')],
    ['/api/diff/p', bad('application/json', `{"${'k'.repeat(9_000)}":`)],
    ['/api/v2/projects/p/object-stream', bad('application/json', JSON.stringify({ objectIds: ['a'], [FOREIGN]: 1 }))],
  ]
  for (const [path, init] of requests) {
    for (const sent of [token, `${token}x`, SECRET]) {
      const answer = await service.fetch(
        new Request(`http://x${path}`, withHeaders(init, { ...authorization(sent), Cookie: SECRET })),
      )
      const { message } = await errorOf(answer)
      told.push(message, JSON.stringify([...answer.headers]))
    }
  }
  for (const text of told) {
    assert.ok(!/[\p{Cc}\u2028\u2029]/u.test(text), `control characters in ${JSON.stringify(text)}`)
    assert.ok(!text.includes(token) && !text.includes(SECRET) && text.length < 600, text)
  }
})

everySide('rule 9: "Abort is normal", whoever goes away while it reads or sends', async (side) => {
  await store(
    side,
    Array.from({ length: 8 }, (_, n) => ({ id: `${n}`, data: randomBytes(300_000).toString('base64') })),
  )
  const reading = new AbortController()
  const answer = await side.ask(`/api/getobjects/${side.project}`, {
    ...idList(Array.from({ length: 8 }, (_, n) => `${n}`)),
    signal: reading.signal,
  })
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader()
  await reader.read()
  reading.abort()
  await assert.rejects(async () => {
    for (let ended = false; !ended;) ended = (await reader.read()).done
  })
  const sending = new AbortController()
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(Buffer.from('[{"id":"late"},')),
    pull: () => void setImmediate(() => sending.abort()),
  })
  const upload = side.ask(`/objects/${side.project}`, {
    ...jsonUpload([]),
    body,
    duplex: 'half',
    signal: sending.signal,
  })
  await upload.then(
    async (refused) => errorOf(refused),
    () => undefined,
  )
  assert.deepEqual(await (await side.ask(`/api/diff/${side.project}`, contractList(['late', '1']))).json(), {
    late: false,
    1: true,
  })
})
