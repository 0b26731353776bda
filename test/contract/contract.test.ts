import assert from 'node:assert/strict'
import { gzipSync } from 'node:zlib'
import { contractList, filePart, linesOf, multipartUpload, onEverySide, type Side, store, storeText } from './sides.ts'
import { errorOf, jsonUpload } from '../http/served.ts'

/* The contract, area A, row by row: resources and endpoints. Authentication, errors, limits and versioning are in contract/rules.test.ts. */

const everySide = onEverySide()

const CHILD = { id: 'child', service_type: 'Data.Chunk', totalChildrenCount: 0, numbers: [1, 2.5, -3] }
const ROOT = {
  id: 'root',
  service_type: 'Base',
  totalChildrenCount: 1,
  numbers: [],
  part: { service_type: 'reference', referencedId: 'child' },
}
const FIELDS: readonly (readonly [string, string])[] = [
  ['id | string | object id', '"id":"f"'],
  ['service_type | string | type name of the object', '"service_type":"Objects.Geometry.Mesh"'],
  ['totalChildrenCount | integer | number of children', '"totalChildrenCount":287000'],
  ['numbers | array of number | example content field', '"numbers":[0,-1.50,2e10,12345678901234567890]'],
]

const listed = (side: Side, ids: readonly string[], accept?: string): Promise<Response> =>
  side.ask(`/api/getobjects/${side.project}`, contractList(ids, accept === undefined ? {} : { Accept: accept }))

const graph = (side: Side, accept?: string): Promise<Response> =>
  side.ask(`/objects/${side.project}/root`, accept === undefined ? {} : { headers: { Accept: accept } })

everySide('ObjectId: "String. Unique identifier of an object. Format beyond string: not constrained"', async (side) => {
  for (const id of ['9f', '8d6f0d5be4f2b0c1a6f5d3c2b1a09f8e', 'a b', 'ü/€?#', 'single', '-', 'x'.repeat(512)]) {
    await store(side, [{ id }])
    const single = await side.ask(`/objects/${side.project}/${encodeURIComponent(id)}/single`)
    assert.deepEqual(await single.json(), { id })
  }
})

everySide(
  'ObjectIdArray: "String (not a JSON array). It holds a JSON-serialized array of object id strings"',
  async (side) => {
    await store(side, [CHILD])
    const body = '{"objects":"[\\"child\\", \\"absent\\"]"}'
    const init = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body }
    assert.deepEqual(await (await side.ask(`/api/diff/${side.project}`, init)).json(), { child: true, absent: false })
    assert.deepEqual(await (await side.ask(`/api/getobjects/${side.project}`, init)).json(), [CHILD])
  },
)

everySide('ObjectDiffResponse: "JSON object mapping each requested <object_id> (key) to a boolean"', async (side) => {
  await store(side, [CHILD, ROOT])
  const ids = ['absent', 'root', 'child', '__proto__', 'root']
  const answer = await (await side.ask(`/api/diff/${side.project}`, contractList(ids))).text()
  assert.equal(answer, '{"absent":false,"root":true,"child":true,"__proto__":false}')
})

for (const [row, member] of FIELDS) {
  everySide(`Object: "${row}"`, async (side) => {
    const text = member.startsWith('"id"') ? `{${member}}` : `{"id":"f",${member}}`
    await storeText(side, `[${text}]`)
    assert.equal(await (await side.ask(`/objects/${side.project}/f/single`)).text(), text)
  })
}

everySide('Object: "Objects may carry other fields"', async (side) => {
  const text = '{"id":"f","units":"m","@displayValue":[{"a":null}],"":true,"applicationId":"\\u0041","nested":{"id":7}}'
  await storeText(side, `[${text}]`)
  assert.equal(await (await side.ask(`/objects/${side.project}/f/single`)).text(), text)
})

everySide(
  'Object: "Very large objects can be split using properties marked chunkable and properties marked detachable"',
  async (side) => {
    const chunks = Array.from({ length: 12 }, (_, n) => ({
      id: `chunk-${n}`,
      data: Array.from({ length: 100 }, (_, at) => n * 100 + at),
    }))
    const reference = ({ id }: { id: string }): object => ({ referencedId: id, service_type: 'reference' })
    await store(side, [
      ...chunks,
      { id: 'root', '@(100)vertices': chunks.map(reference), '@mesh': reference(CHILD) },
      CHILD,
    ])
    const ids = ((await (await graph(side)).json()) as { id: string }[]).map(({ id }) => id)
    assert.deepEqual([ids[0], ids.toSorted()], ['root', ['child', ...chunks.map(({ id }) => id), 'root'].toSorted()])
  },
)

everySide('ObjectArray: "JSON array of Object"', async (side) => {
  assert.equal((await side.ask(`/objects/${side.project}`, jsonUpload([CHILD, ROOT]))).status, 200)
  assert.deepEqual(new Set((await (await listed(side, ['root', 'child'])).json()) as object[]), new Set([ROOT, CHILD]))
})

everySide('Error: "message | string", "statusCode | integer"', async (side) => {
  const error = (await (await side.ask(`/objects/${side.project}/absent`)).json()) as Record<string, unknown>
  assert.equal(typeof error.message, 'string')
  assert.equal(error.statusCode, 404)
})

everySide('Project: "Identified in paths by projectId (string)"', async (side) => {
  for (const project of [`${side.project}/%2F`, `${side.project} ü`, `${side.project}-a`]) {
    const inOther = { ...side, project: encodeURIComponent(project) }
    await store(inOther, [{ id: 'root', project }])
    assert.deepEqual(await (await graph(inOther)).json(), [{ id: 'root', project }])
  }
})

everySide('POST /api/diff/{projectId}: "Tells which of a list of objects the server already holds"', async (side) => {
  const diff = async (): Promise<unknown> =>
    (await side.ask(`/api/diff/${side.project}`, contractList(['root', 'child']))).json()
  assert.deepEqual(await diff(), { root: false, child: false })
  await store(side, [CHILD])
  assert.deepEqual(await diff(), { root: false, child: true })
})

everySide('POST /api/diff/{projectId}: "Response 200: application/json, ObjectDiffResponse"', async (side) => {
  const answer = await side.ask(`/api/diff/${side.project}`, contractList(['root']))
  assert.equal(answer.status, 200)
  assert.match(answer.headers.get('content-type') ?? '', /^application\/json\b/)
  assert.deepEqual(await answer.json(), { root: false })
})

everySide(
  'POST /api/diff/{projectId}: "Content-Type application/json; body object with required field objects"',
  async (side) => {
    for (const body of ['{}', '{"objects":7}', '{"objects":"[7]"}', '{"objects":"root"}', '[]', '']) {
      const answer = await side.ask(`/api/diff/${side.project}`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body,
      })
      assert.equal((await errorOf(answer)).status, 400, body)
    }
  },
)

const ONE = JSON.stringify([CHILD])
const TWO = JSON.stringify([ROOT])
const UPLOADS: readonly (readonly [string, RequestInit])[] = [
  [
    '"multipart/form-data with file part(s) named file: binary content that is a JSON array of objects"',
    multipartUpload([filePart(JSON.stringify([CHILD, ROOT]), 'application/json')]),
  ],
  [
    '"optionally gzip-compressed"',
    multipartUpload([filePart(gzipSync(JSON.stringify([CHILD, ROOT])), 'application/gzip')]),
  ],
  [
    '"Several batches may be sent as several files in one request"',
    multipartUpload([filePart(ONE, 'application/json'), filePart(gzipSync(TWO), 'application/gzip')]),
  ],
  [
    '"application/gzip: gzip-compressed JSON file (recommended)"',
    { method: 'POST', headers: { 'Content-Type': 'application/gzip' }, body: gzipSync(JSON.stringify([CHILD, ROOT])) },
  ],
  ['"application/json: ObjectArray"', jsonUpload([CHILD, ROOT])],
]

for (const [row, init] of UPLOADS) {
  everySide(`POST /objects/{projectId}: ${row}`, async (side) => {
    const answer = await side.ask(`/objects/${side.project}`, init)
    assert.deepEqual(await answer.json(), {
      objects: 2,
      created: 2,
      differing: 0,
      rewritten: 0,
      assigned: [],
      assignedCount: 0,
    })
    assert.deepEqual(await (await graph(side)).json(), [ROOT, CHILD])
  })
}

everySide('POST /objects/{projectId}: "Response 200: upload succeeded"', async (side) => {
  const answer = await side.ask(`/objects/${side.project}`, jsonUpload([CHILD]))
  assert.equal(answer.status, 200)
  assert.deepEqual(await (await side.ask(`/objects/${side.project}/child/single`)).json(), CHILD)
})

everySide(
  'GET /objects/{projectId}/{objectId}/single: "Returns only the named object, without children"',
  async (side) => {
    await store(side, [ROOT, CHILD])
    const answer = await side.ask(`/objects/${side.project}/root/single`)
    assert.equal(answer.status, 200)
    assert.match(answer.headers.get('content-type') ?? '', /^application\/json\b/)
    assert.deepEqual(await answer.json(), ROOT)
  },
)

everySide(
  'POST /api/getobjects/{projectId}: "Returns many objects by id. Fetch the root without children, then request only the missing ones"',
  async (side) => {
    await store(side, [ROOT, CHILD])
    const root = (await (await side.ask(`/objects/${side.project}/root/single`)).json()) as typeof ROOT
    assert.deepEqual(await (await listed(side, [root.part.referencedId])).json(), [CHILD])
  },
)

const FORMATS: readonly (readonly [string, (side: Side, accept?: string) => Promise<Response>])[] = [
  ['POST /api/getobjects/{projectId}', (side, accept) => listed(side, ['root', 'child'], accept)],
  ['GET /objects/{projectId}/{objectId}', graph],
]

for (const [endpoint, read] of FORMATS) {
  everySide(
    `${endpoint}: "Header Accept (optional): application/json or text/plain; default application/json"`,
    async (side) => {
      await store(side, [ROOT, CHILD])
      for (const accept of [undefined, '*/*', 'application/json', 'text/html, application/*;q=0.9']) {
        assert.match((await read(side, accept)).headers.get('content-type') ?? '', /^application\/json\b/, accept)
      }
      assert.match((await read(side, 'text/plain')).headers.get('content-type') ?? '', /^text\/plain\b/)
    },
  )

  everySide(`${endpoint}: "Accept application/json: ObjectArray (JSON array of objects)"`, async (side) => {
    await store(side, [ROOT, CHILD])
    const answer = await read(side, 'application/json')
    assert.equal(answer.status, 200)
    assert.deepEqual(new Set((await answer.json()) as object[]), new Set([ROOT, CHILD]))
  })

  everySide(
    `${endpoint}: "Accept text/plain: one object per line, the object id, a tab character, then the object content as JSON text"`,
    async (side) => {
      await store(side, [ROOT, CHILD])
      const answer = await read(side, 'text/plain')
      assert.equal(answer.status, 200)
      const lines = (await answer.text()).split('\n')
      assert.deepEqual(lines.toSorted(), ['', `child\t${JSON.stringify(CHILD)}`, `root\t${JSON.stringify(ROOT)}`])
      assert.equal(lines.at(-1), '', 'every line ends')
    },
  )
}

everySide(
  'GET /objects/{projectId}/{objectId}: "Returns the object and all its children recursively", the root and its descendants',
  async (side) => {
    const below = (id: string): object => ({ referencedId: id })
    await store(side, [
      { id: 'd' },
      { id: 'c', to: below('d') },
      { id: 'b', to: [below('c'), below('d')] },
      { id: 'root', to: { deep: [[below('b')]] } },
      CHILD,
    ])
    const lines = await linesOf(await graph(side, 'text/plain'))
    assert.deepEqual([...lines.keys()].toSorted(), ['b', 'c', 'd', 'root'])
  },
)
