import assert from 'node:assert/strict'
import { gzipSync } from 'node:zlib'
import { buildModel, jsonArray, type Model, referencedIds } from '../support/model.ts'
import { contractList, filePart, linesOf, multipartUpload, onEverySide, type Part, type Side } from './sides.ts'

/* What the public clients of the contract's service put on the wire, and what they insist on. The clients that can be had run unchanged in clients/. */

const everySide = onEverySide({ uploadStatus: 201 })
const model: Model = buildModel({ objects: 300 })
const ids = model.objects.map(({ id }) => id)
const batches = [0, 100, 200].map((start) => jsonArray(model.objects.slice(start, start + 100)))

/** A body of which no length is told beforehand. */
function chunked({ headers, body }: ReturnType<typeof multipartUpload>): RequestInit {
  const stream = new ReadableStream<Uint8Array>({
    start: (controller) => {
      for (let at = 0; at < body.length; at += 5_000) controller.enqueue(body.subarray(at, at + 5_000))
      controller.close()
    },
  })
  return { method: 'POST', headers, body: stream, duplex: 'half' }
}

function form(list: readonly string[]): RequestInit {
  return {
    method: 'POST',
    headers: { Accept: 'text/plain', 'Content-Type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ objects: JSON.stringify(list) }).toString(),
  }
}

function stream(body: object, further: Readonly<Record<string, string>> = {}): RequestInit {
  return {
    method: 'POST',
    headers: { 'Content-Type': 'application/json; charset=utf-8', ...further },
    body: JSON.stringify(body),
  }
}

async function uploadAll(side: Side, requests: readonly RequestInit[]): Promise<void> {
  const statuses = await Promise.all(
    requests.map(async (init) => (await side.ask(`/objects/${side.project}`, init)).status),
  )
  assert.deepEqual(
    statuses,
    requests.map(() => 201),
  )
}

const streamPath = ({ project }: Side): string => `/api/v2/projects/${project}/object-stream/`

everySide(
  'specklepy: multipart with one gzip file, forms with all ids, Accept: text/plain on every request',
  async (side) => {
    const accept = { Accept: 'text/plain' }
    const uploads = batches.map((batch, n) =>
      multipartUpload([filePart(gzipSync(batch), 'application/gzip', `batch-${n}`)]),
    )
    await uploadAll(
      side,
      uploads.map((init) => ({ ...init, headers: { ...(init.headers as Record<string, string>), ...accept } })),
    )
    const diff = await side.ask(`/api/diff/${side.project}`, form([...ids, 'absent']))
    assert.match(diff.headers.get('content-type') ?? '', /^application\/json\b/)
    assert.deepEqual(
      await diff.json(),
      { ...Object.fromEntries(ids.map((id) => [id, true])), absent: false },
      'every id is there',
    )
    const root = await side.ask(`/objects/${side.project}/${model.rootId}/single`, { headers: accept })
    assert.equal(await root.text(), model.byId.get(model.rootId))
    assert.deepEqual(await linesOf(await side.ask(`/api/getobjects/${side.project}`, form(ids))), model.byId)
  },
)

everySide('specklepy: each line has exactly two tab fields, however lines are split', async (side) => {
  const texts = ['\u0085', '\u2028', '\u2029', '\\t', '\\u000b', '\\u001c', '\\r\\n'].map(
    (character, n) => `{"id":"${n}",\t"text":"a${character}b"\r\n}`,
  )
  await uploadAll(side, [multipartUpload([filePart(gzipSync(`[${texts.join()}]`), 'application/gzip')])])
  const text = await (await side.ask(`/api/getobjects/${side.project}`, form(texts.map((_, n) => `${n}`)))).text()
  const lines = text.split(/[^\P{Cc}\t]|[\u2028\u2029]/u).filter((line) => line !== '')
  assert.equal(lines.length, texts.length)
  for (const line of lines) {
    const [id, json, ...more] = line.split('\t')
    assert.equal((JSON.parse(json) as { id: string }).id, id)
    assert.deepEqual(more, [])
  }
})

everySide(
  '.NET, current: a part with Content-Encoding: gzip, without Content-Length; object-stream with a slash and heartbeats',
  async (side) => {
    const encoded = (content: string, n: number): Part => ({
      headers: [
        'Content-Type: application/gzip',
        'Content-Encoding: gzip',
        `Content-Disposition: form-data; name=batch-${n}; filename=batch-${n}; filename*=utf-8''batch-${n}`,
      ],
      content: gzipSync(content),
    })
    await uploadAll(
      side,
      batches.map((batch, n) => chunked(multipartUpload([encoded(batch, n)]))),
    )
    const root = await (await side.ask(`/objects/${side.project}/${model.rootId}/single`)).text()
    assert.equal(root, model.byId.get(model.rootId))
    assert.ok(!root.includes('\n'), 'single is one line')
    const answers = await Promise.all(
      [0, 100, 200].map(async (start) =>
        linesOf(
          await side.ask(
            streamPath(side),
            stream({ objectIds: ids.slice(start, start + 100) }, { 'x-speckle-object-stream-heartbeats': 'true' }),
          ),
        ),
      ),
    )
    assert.deepEqual(
      new Map(answers.flatMap((lines) => [...lines].filter(([id]) => !id.startsWith(':')))),
      model.byId,
      'every id that was asked for comes back',
    )
    const diff = await side.ask(`/api/diff/${side.project}`, contractList([...ids, 'absent']))
    assert.equal(
      Object.values((await diff.json()) as Record<string, boolean>).filter((held) => held).length,
      ids.length,
    )
  },
)

everySide('.NET, older: several plain parts of text/plain in a request; long lists as JSON', async (side) => {
  await uploadAll(side, [multipartUpload(batches.map((batch, n) => filePart(batch, 'text/plain', `batch-${n}`)))])
  const diff = await side.ask(
    `/api/diff/${side.project}`,
    contractList([...ids, ...Array.from({ length: 5_000 }, (_, n) => `${n}`.padStart(32, 'a'))]),
  )
  assert.equal(Object.values((await diff.json()) as Record<string, boolean>).filter((held) => held).length, ids.length)
  assert.deepEqual(
    await linesOf(await side.ask(`/api/getobjects/${side.project}`, contractList(ids, { Accept: 'text/plain' }))),
    model.byId,
  )
})

everySide(
  'objectloader2: single with Accept: text/plain, then object-stream with a mask; every line ends, every object has its id',
  async (side) => {
    await uploadAll(
      side,
      batches.map((batch) => multipartUpload([filePart(batch, 'application/json')])),
    )
    const root = JSON.parse(
      await (
        await side.ask(`/objects/${side.project}/${model.rootId}/single`, { headers: { Accept: 'text/plain' } })
      ).text(),
    ) as { __closure: Record<string, number> }
    const children = Object.keys(root.__closure)
    assert.equal(children.length, ids.length - 1)
    const lines = async (attributeMask?: object): Promise<Map<string, string>> =>
      linesOf(await side.ask(streamPath(side), stream({ objectIds: children, attributeMask })))
    const whole = await lines()
    assert.deepEqual(new Set(whole.keys()), new Set(children))
    for (const mask of [{ exclude: ['id', 'speckle_type', '__closure'] }, { include: ['speckle_type'] }]) {
      const masked = await lines(mask)
      assert.equal(masked.size, children.length)
      for (const [id, json] of masked) {
        const object = JSON.parse(json) as Record<string, unknown>
        assert.equal(object.id, id)
        assert.ok(!('__closure' in object))
      }
    }
  },
)

everySide('objectloader: four getobjects at a time, as lines; ids that are not there are left out', async (side) => {
  await uploadAll(
    side,
    batches.map((batch) => multipartUpload([filePart(batch, 'application/json')])),
  )
  const answers = await Promise.all(
    [0, 1, 2, 3].map(async (quarter) => {
      const part = ids.filter((_, n) => n % 4 === quarter)
      return linesOf(
        await side.ask(
          `/api/getobjects/${side.project}`,
          contractList([...part, `absent-${quarter}`], { Accept: 'text/plain' }),
        ),
      )
    }),
  )
  assert.deepEqual(new Map(answers.flatMap((lines) => [...lines])), model.byId)
})

everySide(
  'object sender, in browsers: a part named object-batch, file name blob, application/json; [] when nothing is new',
  async (side) => {
    const part = (content: string): Part => ({
      headers: [
        'Content-Disposition: form-data; name="object-batch"; filename="blob"',
        'Content-Type: application/json',
      ],
      content,
    })
    await uploadAll(
      side,
      batches.map((batch) => multipartUpload([part(batch)])),
    )
    const diff = await side.ask(`/api/diff/${side.project}`, {
      ...contractList(ids),
      headers: { 'Content-Type': 'application/json' },
    })
    assert.ok(Object.values((await diff.json()) as Record<string, boolean>).every((held) => held))
    await uploadAll(side, [multipartUpload([part('[]')])])
    const refused = await side.ask(`/api/diff/${side.project}`, contractList(ids), 'nobody')
    assert.match(refused.headers.get('content-type') ?? '', /^application\/json\b/, 'an error body of diff is JSON')
    assert.equal(((await refused.json()) as { statusCode: number }).statusCode, 401)
  },
)

everySide('Unreal, n8n and others: exactly 200 on reads, lines split at the first tab', async (side) => {
  await uploadAll(
    side,
    batches.map((batch) => multipartUpload([filePart(batch, 'application/json')])),
  )
  const child = referencedIds(model.byId.get(model.rootId) ?? '')[0]
  const reads = [
    await side.ask(`/objects/${side.project}/${child}/single`),
    await side.ask(`/api/getobjects/${side.project}`, contractList([child, 'absent'])),
    await side.ask(streamPath(side), stream({ objectIds: [child], attributeMask: { include: ['name'] } })),
    await side.ask(`/objects/${side.project}/${model.rootId}`),
  ]
  for (const answer of reads) {
    assert.equal(answer.status, 200)
    assert.ok((await answer.text()).includes(child))
  }
})
