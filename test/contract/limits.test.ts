import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { DEFAULT_LIMITS, type Limits, type StowageErrorCode } from '../../src/index.ts'
import { MB } from '../../src/limits.ts'
import { jsonUpload } from '../http/served.ts'
import { filePart, multipartUpload, onEverySide, shapedError, type Side } from './sides.ts'

/* Rule 4: each limit, small, at the largest value that is accepted and one beyond. Reliability cases 1 to 4 are about the sizes of the contract. */

/** The limits that refuse requests; the other one shortens an answer. */
type Bounds = Omit<Limits, 'assignedIdsMax'>

const LIMITS: Bounds = {
  objectBytesMax: 1_000,
  requestBytesMax: 4_000,
  inflatedBytesMax: 6_000,
  objectsMax: 5,
  nestingMax: 4,
  partsMax: 3,
  partHeaderBytesMax: 200,
  idListBytesMax: 300,
}
const everySide = onEverySide({ limits: LIMITS })

interface LimitCase {
  readonly code: StowageErrorCode
  /** A request that needs this much of the limit. */
  readonly request: (amount: number) => RequestInit
  readonly path?: (project: string) => string
}

const upload = (text: string): RequestInit => ({ ...jsonUpload([]), body: text })
const padded = (text: string, bytes: number): string => text.padEnd(bytes, ' ')
const object = (bytes: number): string => `{"id":"a","x":"${'x'.repeat(bytes - 17)}"}`
const nested = (levels: number): string => `[{"id":"a","x":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}]`

function fileWithHeaders(bytes: number): RequestInit {
  const part = filePart('[]', 'application/json')
  const known = part.headers.reduce((sum, header) => sum + header.length + 2, 0)
  return multipartUpload([{ ...part, headers: [...part.headers, `X-Long: ${'x'.repeat(bytes - known - 10)}`] }])
}

const CASES: { readonly [L in keyof Bounds]: readonly LimitCase[] } = {
  objectBytesMax: [{ code: 'object_too_large', request: (bytes) => upload(`[ ${object(bytes)} ]`) }],
  requestBytesMax: [
    { code: 'request_too_large', request: (bytes) => upload(padded('[]', bytes)) },
    {
      code: 'request_too_large',
      request: (bytes) => ({ ...jsonUpload([]), body: new Blob([padded('[]', bytes)]).stream(), duplex: 'half' }),
    },
  ],
  inflatedBytesMax: [
    {
      code: 'inflated_too_large',
      request: (bytes) => ({
        method: 'POST',
        headers: { 'Content-Type': 'application/gzip' },
        body: gzipSync(padded('[]', bytes)),
      }),
    },
    {
      code: 'inflated_too_large',
      request: (bytes) =>
        multipartUpload(
          [5_000, bytes - 5_000].map((each) => filePart(gzipSync(padded('[]', each)), 'application/gzip')),
        ),
    },
  ],
  objectsMax: [
    {
      code: 'too_many_objects',
      request: (count) => jsonUpload(Array.from({ length: count }, (_, n) => ({ id: `${n}` }))),
    },
    {
      code: 'too_many_objects',
      request: (count) =>
        multipartUpload([
          filePart('[{"id":"a"},{"id":"a"}]', 'application/json'),
          filePart(`[${'{"id":"a"},'.repeat(count - 3)}{}]`, 'application/json'),
        ]),
    },
  ],
  nestingMax: [{ code: 'nesting_too_deep', request: (levels) => upload(nested(levels)) }],
  partsMax: [
    {
      code: 'too_many_parts',
      request: (count) => multipartUpload(Array.from({ length: count }, () => filePart('[]', 'application/json'))),
    },
  ],
  partHeaderBytesMax: [{ code: 'part_header_too_large', request: fileWithHeaders }],
  idListBytesMax: [
    {
      code: 'id_list_too_large',
      path: (project) => `/api/diff/${project}`,
      request: (bytes) => upload(padded('{"objects":["a"]}', bytes)),
    },
    {
      code: 'id_list_too_large',
      path: (project) => `/api/getobjects/${project}`,
      request: (bytes) => upload(padded('{"objects":["a"]}', bytes)),
    },
    {
      code: 'id_list_too_large',
      path: (project) => `/api/v2/projects/${project}/object-stream`,
      request: (bytes) => upload(padded('{"objectIds":["a"]}', bytes)),
    },
  ],
}

for (const [limit, cases] of Object.entries(CASES) as [keyof Bounds, readonly LimitCase[]][]) {
  everySide(
    `rule 4: "Limits hold in flight", ${limit}: the limit itself is accepted, one more refused`,
    async (side) => {
      for (const limitCase of cases) await holds(side, limitCase, LIMITS[limit])
    },
  )
}

async function holds(
  side: Side,
  { code, request, path = (project) => `/objects/${project}` }: LimitCase,
  max: number,
): Promise<void> {
  const refused = await shapedError(await side.ask(path(side.project), request(max + 1)))
  assert.deepEqual([refused.code, refused.status], [code, code === 'nesting_too_deep' ? 400 : 413], refused.message)
  assert.ok(refused.message.includes(String(max)), `the limit is told: ${refused.message}`)
  const accepted = await side.ask(path(side.project), request(max))
  const answer = await accepted.text()
  assert.equal(accepted.status, 200, answer)
}

everySide('rule 4: an object that is too large is named', async (side) => {
  const { message } = await shapedError(await side.ask(`/objects/${side.project}`, upload(`[{},${object(1_001)}]`)))
  assert.ok(message.includes('"a"') && message.includes('element 1'), message)
})

test('the defaults: "1 MB is 1,048,576 bytes: object 10 MB, request 50 MB, inflated 512 MB, 500,000 objects, nesting 1,000, 100 parts, part headers 16 KB, id-list body 32 MB"', () => {
  assert.equal(MB, 1_048_576)
  assert.deepEqual(DEFAULT_LIMITS, {
    objectBytesMax: 10_485_760,
    requestBytesMax: 52_428_800,
    inflatedBytesMax: 536_870_912,
    objectsMax: 500_000,
    nestingMax: 1_000,
    partsMax: 100,
    partHeaderBytesMax: 16_384,
    idListBytesMax: 33_554_432,
    assignedIdsMax: 10_000,
  })
})
