import assert from 'node:assert/strict'
import { test } from 'node:test'
import { served } from '../http/served.ts'
import { jsonArray } from '../support/model.ts'
import { gzippedUpload, plainUpload } from '../wire/dotnet.ts'
import { replay } from '../wire/replay.ts'

const MB = 1_048_576
const OBJECTS_PER_PART = 25
/** The largest request of the older .NET SDK: parts of 25,000,000 bytes of JSON, five at most, 100,000,000 in all. */
const arrays = Array.from({ length: 4 }, (_, part) =>
  jsonArray(
    Array.from({ length: OBJECTS_PER_PART }, (__, n) => ({
      id: `${part}.${n}`,
      json: `{"id":"${part}.${n}","text":"${'wall, door, '.repeat(83_000)}"}`,
    })),
  ),
)

test(
  'older .NET SDK: its largest requests pass when gzipped, and get 413 uncompressed unless requestBytesMax is raised',
  { timeout: 120_000 },
  async (t) => {
    const { port } = await served(t)
    assert.equal((await replay(port, gzippedUpload('p', arrays))).status, 200)
    const refused = await replay(port, plainUpload('q', arrays))
    assert.deepEqual([refused.status, (JSON.parse(refused.text) as { code: string }).code], [413, 'request_too_large'])
    const roomy = await served(t, { limits: { requestBytesMax: 100 * MB } })
    const taken = await replay(roomy.port, plainUpload('q', arrays))
    assert.equal(taken.status, 200, taken.text)
    assert.equal((JSON.parse(taken.text) as { created: number }).created, arrays.length * OBJECTS_PER_PART)
  },
)
