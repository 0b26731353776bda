import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { MB } from '../../src/limits.ts'
import { linesOf } from '../contract/sides.ts'
import { errorOf, jsonUpload, openService } from '../http/served.ts'
import { processorMs } from '../support/processor.ts'
import type { Outcome } from './graph-shapes.ts'

/**
 * Processor time up to the first byte of a graph of 100,000 objects without a plan. Half a second is usual; work that
 * grows with the square of the objects would take minutes.
 */
const FIRST_BYTE_MS = 10_000
/**
 * V8 lets 64 MB of external memory come together before it collects any, and the text of the answer is read in the same
 * process.
 */
const GROWN_BYTES_MAX = 192 * MB

type Expected = Pick<Outcome, 'lines' | 'missing' | 'strictStatus'>
const COMPLETE: Expected = { lines: 100_000, missing: '0', strictStatus: 200 }

const EXPECTED: Readonly<Record<string, Expected>> = {
  control: COMPLETE,
  ring: COMPLETE,
  'star and back': COMPLETE,
  'everybody knows everybody': { ...COMPLETE, lines: 300 },
  'missing children': { lines: 1, missing: '100000', strictStatus: 409 },
}

test('case 28: cycles, depth 100,000, 100,000 children and 100,000 missing children end in time and memory, each object once, the root first', async () => {
  const child = fileURLToPath(new URL('./graph-shapes.ts', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [...process.execArgv, child])
  const outcomes = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Outcome)
  assert.deepEqual(
    outcomes.map(({ name }) => name),
    Object.keys(EXPECTED),
  )
  for (const { name, lines, missing, strictStatus, repeated, rootFirst, graphMs, againMs, grownBytes } of outcomes) {
    assert.deepEqual({ lines, missing, strictStatus }, EXPECTED[name], name)
    assert.deepEqual([repeated, rootFirst], [0, true], name)
    assert.ok(graphMs <= FIRST_BYTE_MS && againMs <= FIRST_BYTE_MS, `${name}: ${graphMs} ms, then ${againMs} ms`)
    if (name !== 'control')
      assert.ok(grownBytes <= GROWN_BYTES_MAX, `${name}: memory grew by ${grownBytes} bytes beyond the control's`)
  }
})

function opened(t: TestContext, memoryBytesMax?: number): (path: string, init?: RequestInit) => Promise<Response> {
  const service = openService({ memoryBytesMax })
  t.after(() => service.close({ graceMs: 0 }))
  return (path, init) => service.fetch(new Request(`http://x${path}`, init))
}

test('case 28: a chain that changes packs 20,000 times needs little memory', async (t) => {
  const ask = opened(t, 8 * MB)
  for (let pack = 0; pack < 200; pack++) {
    const objects = Array.from({ length: 100 }, (_, k) => k * 200 + pack).map((n) => ({
      id: `o${n}`,
      to: { referencedId: `o${(n + 1) % 20_000}` },
    }))
    await (await ask('/objects/p', jsonUpload(objects))).arrayBuffer()
  }
  const beganMs = processorMs()
  const answer = await ask('/objects/p/o0?strict', { headers: { Accept: 'text/plain' } })
  assert.ok(processorMs() - beganMs < FIRST_BYTE_MS)
  assert.equal((await linesOf(answer)).size, 20_000)
})

const to = (...ids: readonly string[]): object => ({ to: ids.map((referencedId) => ({ referencedId })) })

test('case 28: self-references, mutual references and circular claims end', async (t) => {
  const ask = opened(t)
  await (
    await ask(
      '/objects/p',
      jsonUpload([
        { id: 'self', ...to('self'), __closure: { self: 0 } },
        { id: 'one', ...to('two', 'two') },
        { id: 'two', ...to('one') },
        { id: 'claims', __closure: { claimed: 1 } },
        { id: 'claimed', __closure: { claims: 1, self: 2, nothing: 3 } },
      ]),
    )
  ).arrayBuffer()
  const below = async (root: string): Promise<readonly string[]> => [
    ...(await linesOf(await ask(`/objects/p/${root}?strict`, { headers: { Accept: 'text/plain' } }))).keys(),
  ]
  assert.deepEqual(await below('self'), ['self'])
  assert.deepEqual(await below('one'), ['one', 'two'])
  assert.deepEqual(await below('two'), ['two', 'one'])
  const [first, ...rest] = await below('claims')
  assert.deepEqual([first, rest.toSorted()], ['claims', ['claimed', 'self']])
})

test('case 28: a missing child is counted once, named by ?strict, and found once it arrives', async (t) => {
  const ask = opened(t)
  const missing = Array.from({ length: 150 }, (_, n) => `m${n}`)
  await (
    await ask(
      '/objects/p',
      jsonUpload([
        { id: 'root', ...to('child', ...missing) },
        { id: 'child', ...to(...missing, 'root') },
      ]),
    )
  ).arrayBuffer()
  const strict = await ask('/objects/p/root?strict')
  const { statusCode, message, ids } = (await strict.json()) as {
    statusCode: number
    message: string
    ids: readonly string[]
  }
  assert.deepEqual(
    [strict.status, statusCode, ids.length, new Set(ids).size],
    [409, 409, 100, 100],
    'the first hundred',
  )
  assert.ok(message.includes('150') && ids.every((id) => missing.includes(id)), message)
  for (const round of [0, 1]) {
    await (
      await ask(
        '/objects/p',
        jsonUpload(missing.slice(round * 75, round * 75 + 75).map((id) => ({ id, ...to('root') }))),
      )
    ).arrayBuffer()
    const graph = await ask('/objects/p/root')
    assert.equal(graph.headers.get('stowage-missing-objects'), String(75 - round * 75))
    assert.equal(((await graph.json()) as unknown[]).length, 2 + 75 + round * 75)
  }
  assert.equal((await ask('/objects/p/root?strict', { method: 'HEAD' })).status, 200)
  assert.equal((await errorOf(await ask('/objects/p/m-none?strict'))).status, 404)
})
