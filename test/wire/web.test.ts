import assert from 'node:assert/strict'
import { test } from 'node:test'
import { served } from '../http/served.ts'
import { buildModel, jsonArray } from '../support/model.ts'
import { inPieces, linesOf, type Recorded, replay } from './replay.ts'

const BOUNDARY = '----WebKitFormBoundaryq3vR0cKs9ZVb1wYt'
const OF_A_PAGE: readonly string[] = [
  'Connection: keep-alive',
  'Authorization: Bearer any',
  'Accept: */*',
  'Origin: http://page.example',
  'Accept-Encoding: gzip, deflate, br, zstd',
]
const model = buildModel({ objects: 400 })
const ids = [...model.byId.keys()]

/** The object sender in a browser: a form with one blob. */
function senderUpload(array: string): Recorded {
  const head = `--${BOUNDARY}\r\nContent-Disposition: form-data; name="object-batch"; filename="blob"\r\nContent-Type: application/json\r\n\r\n`
  return {
    method: 'POST',
    path: '/objects/p',
    headers: [...OF_A_PAGE, `Content-Type: multipart/form-data; boundary=${BOUNDARY}`],
    body: [`${head}${array}\r\n--${BOUNDARY}--\r\n`],
  }
}

function jsonRequest(path: string, payload: object, ...headers: readonly string[]): Recorded {
  return {
    method: 'POST',
    path,
    headers: [...headers, 'Authorization: Bearer any', 'Content-Type: application/json'],
    body: [JSON.stringify(payload)],
  }
}

test('browser object sender: batches, the empty array when nothing is new, 201, and JSON from diff', async (t) => {
  const { port } = await served(t, { uploadStatus: 201 })
  for (const batch of [...inPieces(model.objects, 150), []])
    assert.equal((await replay(port, senderUpload(jsonArray(batch)))).status, 201)
  const diff = await replay(port, {
    ...jsonRequest('/api/diff/p', { objects: JSON.stringify([...ids, 'absent']) }),
    headers: [...OF_A_PAGE, 'Content-Type: application/json'],
  })
  assert.match(diff.type, /^application\/json\b/)
  assert.deepEqual(JSON.parse(diff.text), { ...Object.fromEntries(ids.map((id) => [id, true])), absent: false })
  const failed = await replay(port, {
    method: 'POST',
    path: '/api/diff/p',
    headers: [...OF_A_PAGE, 'Content-Type: application/json'],
    body: ['{"objects":7}'],
  })
  assert.match(failed.type, /^application\/json\b/, 'an error of diff is JSON as well')
  assert.equal((JSON.parse(failed.text) as { statusCode: number }).statusCode, 400)
})

test('Unreal, n8n and the viewer: exactly 200 on reads, lines to be split at the first tab, masks that keep the id', async (t) => {
  const { port } = await served(t, { uploadStatus: 201 })
  await replay(port, senderUpload(jsonArray(model.objects)))
  const single = await replay(port, {
    method: 'GET',
    path: `/objects/p/${model.rootId}/single`,
    headers: ['Accept: text/plain', 'Authorization: Bearer any', 'User-Agent: UnrealEngine'],
  })
  assert.deepEqual([single.status, single.text], [200, model.byId.get(model.rootId)])
  assert.deepEqual(
    linesOf(
      await replay(
        port,
        jsonRequest('/api/getobjects/p', { objects: JSON.stringify([...ids, 'absent']) }, 'Accept: text/plain'),
      ),
    ),
    model.byId,
  )
  for (const slash of ['', '/']) {
    const masked = linesOf(
      await replay(
        port,
        jsonRequest(`/api/v2/projects/p/object-stream${slash}`, {
          objectIds: ids,
          attributeMask: { include: ['name'] },
        }),
      ),
    )
    assert.deepEqual([...masked.keys()].sort(), [...ids].sort())
    for (const [id, json] of masked) {
      const { id: kept, name, ...further } = JSON.parse(json) as Record<string, unknown>
      assert.equal(kept, id)
      assert.equal(name, (JSON.parse(model.byId.get(id) ?? '') as Record<string, unknown>).name)
      assert.deepEqual(further, {})
    }
  }
})
