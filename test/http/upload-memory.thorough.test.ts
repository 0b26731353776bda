import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { countLent } from '../support/lent.ts'
import { blockUpload, bodyOf, inBlocks, lineOf } from '../support/ready-blocks.ts'
import { bothCores } from './served.ts'

const OBJECTS = 2_000

/** Objects of about 600 bytes each that differ from those of every other name: several batches and many blocks. */
function objectsOf(name: string): string[] {
  return Array.from({ length: OBJECTS }, (_, i) => {
    const noise = Array.from({ length: 8 }, (_, n) => createHash('sha256').update(`${name} ${i} ${n}`).digest('hex'))
    return JSON.stringify({ id: `${name}-${i}`, noise })
  })
}

function gzipped(jsons: readonly string[]): RequestInit {
  const body = new Uint8Array(gzipSync(`[${jsons.join(',')}]`))
  return { method: 'POST', headers: { 'Content-Type': 'application/gzip' }, body }
}

for (const { form, uploadOf } of [
  { form: 'gzipped arrays', uploadOf: gzipped },
  { form: 'ready blocks', uploadOf: (jsons: readonly string[]) => blockUpload(bodyOf(inBlocks(jsons))) },
])
  test(`uploads of ${form} give back all memory that they use again, and change no byte of each other`, async (t) => {
    const names = ['first', 'second', 'third', 'fourth']
    for (const [core, ask] of await bothCores(t)) {
      const counted = countLent(t)
      const answers = await Promise.all(names.map((name) => ask('/objects/p', uploadOf(objectsOf(name)))))
      for (const answer of answers) assert.equal(answer.status, 200, core)
      assert.ok(counted.bytes > names.length * 1_000_000, `${counted.bytes} bytes were lent`)
      assert.equal(counted.outBytes, 0, core)
      for (const name of names) {
        const objects = objectsOf(name)
        const ids = objects.map((json) => (JSON.parse(json) as { id: string }).id)
        const answer = await ask('/api/getobjects/p', {
          method: 'POST',
          headers: { 'Content-Type': 'application/json', Accept: 'text/plain' },
          body: JSON.stringify({ objects: JSON.stringify(ids) }),
        })
        assert.equal(answer.status, 200, core)
        const lines = (await answer.text()).trimEnd().split('\n')
        assert.deepEqual(lines.toSorted(), objects.map((json) => lineOf(json).trimEnd()).toSorted(), core)
      }
    }
  })
