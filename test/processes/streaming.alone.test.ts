import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { runServer } from '../automation/run-server.ts'

const STOREYS = 200
const WALLS = 1_000
const RSS_MB_MAX = 200

test('a function that streams 200,000 objects, and annotates a fifth of them, stays under 200 MB', async (t) => {
  const storeys = Array.from({ length: STOREYS }, (_, storey) => ({ name: `storey ${storey}`, '@walls': Array.from({ length: WALLS }, (_, n) => wall(storey * WALLS + n)) }))
  const server = await runServer(t, { name: 'large', '@storeys': storeys })
  const script = fileURLToPath(new URL('./functions/streaming.ts', import.meta.url))
  await promisify(execFile)(process.execPath, [...process.execArgv, script, await server.written()], { timeout: 600_000 })
  const { status, message, result, annotations } = server.run.backend.reported
  assert.equal(status, 'succeeded', message)
  assert.equal(result?.objects, 1 + STOREYS + STOREYS * WALLS)
  assert.equal(annotations.reduce((sum, { objectAppIds }) => sum + Object.keys(objectAppIds).length, 0), (STOREYS * WALLS) / 5)
  const rssMb = Number(result.rssMb)
  t.diagnostic(`${rssMb} MB`)
  assert.ok(rssMb < RSS_MB_MAX, `${rssMb} MB`)
})

function wall(n: number): object {
  return { speckle_type: 'Wall', name: `wall ${n}`, thickness: n % 100, outline: Array.from({ length: 20 }, (_, at) => n + at / 7) }
}
