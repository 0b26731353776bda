import assert from 'node:assert/strict'
import { randomBytes, randomInt } from 'node:crypto'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { DeflatePool } from '../../src/compression/deflate-pool.ts'
import { emit, emittedLength, type EmitOptions } from '../../src/emit/emit.ts'
import { collected, type Made, type MadeObject, madeObjects, madeSelection } from './made-selection.ts'

const signal = new AbortController().signal
const COMBINATIONS: EmitOptions[] = [
  { format: 'text', coding: 'gzip' },
  { format: 'text', coding: 'identity' },
  { format: 'json', coding: 'gzip' },
  { format: 'json', coding: 'identity' },
]
const ZLIB_SLACK_BYTES = 16
const SHAPES = [
  {},
  { planned: true },
  { linesEach: 1 },
  { linesEach: 2 },
  { linesEach: 3, blockBytes: 150_000 },
  { linesEach: 7, blockBytes: 1 },
]
/** Those whose length a plan fixes. */
const MEASURED = COMBINATIONS.filter(({ format, coding }) => format === 'text' || coding === 'identity')

async function decoded(made: Made, options: EmitOptions): Promise<Buffer> {
  const bytes = await collected(emit(made.selection, options, { signal }))
  return options.coding === 'gzip' ? gunzipSync(bytes) : bytes
}

/** Objects of 10 KB that hardly compress, so that answers have several buffers. */
function randomObjects(count: number): MadeObject[] {
  return Array.from({ length: count }, (_, i) => ({
    id: `r${i}`,
    json: `{"data":"${randomBytes(7_500).toString('base64')}"}`,
  }))
}

function expected(made: Made, { format }: EmitOptions): Buffer {
  return format === 'text' ? made.text : made.json
}

test('every format and coding emits stored and loose lines, with and without a plan', async () => {
  for (const [count, jsonBytes] of [
    [1, 60],
    [2, 60],
    [500, 60],
    [300, 5_000],
  ]) {
    const objects = madeObjects(count, jsonBytes)
    for (const shape of SHAPES) {
      const made = await madeSelection(objects, shape)
      for (const options of COMBINATIONS) {
        const what = `${count} objects of ${jsonBytes} bytes, ${JSON.stringify({ ...shape, ...options })}`
        assert.ok((await decoded(made, options)).equals(expected(made, options)), what)
      }
      assert.equal(made.open, 0)
    }
  }
})

test('the length of a planned response is known and equals the sent bytes', async () => {
  for (const count of [0, 1, 40]) {
    const made = await madeSelection(madeObjects(count), { planned: true })
    for (const options of COMBINATIONS) {
      const length = emittedLength(made.selection, options)
      const sent = await collected(emit(made.selection, options, { signal }))
      assert.equal(length, options.format === 'json' && options.coding === 'gzip' ? undefined : sent.length)
    }
    assert.equal(
      emittedLength(made.selection, { format: 'text', coding: 'gzip', heartbeat: { intervalMs: 5, line: made.text } }),
      undefined,
    )
    assert.equal(
      emittedLength(made.selection, { format: 'text', coding: 'gzip', mask: { include: ['name'] } }),
      undefined,
    )
  }
  const unplanned = await madeSelection(madeObjects(40))
  for (const options of COMBINATIONS) assert.equal(emittedLength(unplanned.selection, options), undefined)
})

test('an empty selection is an empty text and an empty array', async () => {
  const made = await madeSelection([])
  for (const options of COMBINATIONS)
    assert.equal((await decoded(made, options)).toString(), options.format === 'json' ? '[]' : '')
})

test('every range of a small planned response is exact', async () => {
  const made = await madeSelection(madeObjects(3, 30), { planned: true, blockBytes: 60 })
  for (const options of MEASURED) {
    const whole = await collected(emit(made.selection, options, { signal }))
    for (let start = 0; start <= whole.length; start += 1) {
      for (let end = start; end <= whole.length; end += 1 + (start % 7)) {
        const part = await collected(emit(made.selection, { ...options, start, end }, { signal }))
        assert.ok(
          part.equals(whole.subarray(start, end)),
          `${options.format} ${options.coding} ${start} to ${end} of ${whole.length}`,
        )
      }
    }
  }
  assert.equal(made.open, 0)
})

test('random ranges of a larger planned response, open at one end or not, are exact', async () => {
  const made = await madeSelection(madeObjects(2_000, 200), { planned: true, blockBytes: 4_000 })
  for (const options of MEASURED) {
    const whole = await collected(emit(made.selection, options, { signal }))
    for (let round = 0; round < 60; round++) {
      const start = randomInt(0, whole.length)
      const end = randomInt(start, whole.length + 1)
      const part = await collected(emit(made.selection, { ...options, start, end }, { signal }))
      assert.ok(
        part.equals(whole.subarray(start, end)),
        `${options.format} ${options.coding} ${start} to ${end} of ${whole.length}`,
      )
    }
    const from = whole.length - 5_000
    assert.ok(
      (await collected(emit(made.selection, { ...options, start: from }, { signal }))).equals(whole.subarray(from)),
    )
    assert.ok(
      (await collected(emit(made.selection, { ...options, end: from }, { signal }))).equals(whole.subarray(0, from)),
    )
  }
})

test('ranges outside a response or of unknown length are refused before reading', async () => {
  const planned = await madeSelection(madeObjects(3), { planned: true })
  const length = planned.text.length
  for (const [start, end] of [
    [-1, 5],
    [5, 4],
    [0, length + 1],
    [0.5, 2],
    [length + 1, length + 1],
  ]) {
    const part = { ...COMBINATIONS[1], start, end }
    assert.throws(() => emit(planned.selection, part, { signal }), { code: 'range_not_satisfiable' })
  }
  assert.throws(() => emit(planned.selection, { format: 'json', coding: 'gzip', start: 1 }, { signal }), {
    code: 'not_supported',
  })
  const unplanned = await madeSelection(madeObjects(3))
  assert.throws(() => emit(unplanned.selection, { format: 'text', coding: 'gzip', end: 1 }, { signal }), {
    code: 'not_supported',
  })
  assert.equal(planned.pulls + unplanned.pulls, 0)
})

test('one huge line is emitted in bounded memory', async () => {
  const json = `{"id":"huge","data":[${'0.125,'.repeat(800_000)}1]}`
  for (const shape of [{ linesEach: 1 }, { planned: true }]) {
    const made = await madeSelection(
      [
        { id: 'huge', json },
        { id: 'b', json: '{}' },
      ],
      shape,
    )
    for (const options of COMBINATIONS) assert.ok((await decoded(made, options)).equals(expected(made, options)))
  }
})

test('the same selection gives gzip of the same size, regardless of its batches', async () => {
  const objects = madeObjects(4_000, 120)
  const one = await madeSelection(objects, { linesEach: 1, blockBytes: 1_000 })
  const other = await madeSelection(objects, { linesEach: 1, blockBytes: 90_000 })
  for (const options of COMBINATIONS.filter(({ coding }) => coding === 'gzip')) {
    const [first, second] = [
      await collected(emit(one.selection, options, { signal })),
      await collected(emit(other.selection, options, { signal })),
    ]
    assert.ok(gunzipSync(first).equals(gunzipSync(second)))
    // What zlib finds in the last segment, which is not a whole one, depends a little on where in its window the
    // segment begins.
    assert.ok(Math.abs(first.length - second.length) <= ZLIB_SLACK_BYTES, `${first.length} and ${second.length} bytes`)
  }
})

test('the lines of the selection are never modified', async () => {
  const made = await madeSelection(madeObjects(50), { linesEach: 1 })
  const before = await collected(made.selection.lines({ signal }))
  await decoded(made, { format: 'json', coding: 'identity' })
  assert.ok((await collected(made.selection.lines({ signal }))).equals(before))
})

test('a failing read rejects and frees everything, with its own or a shared compressor', async () => {
  const compressor = new DeflatePool({ level: 1, concurrency: 2 })
  for (const shape of [{ linesEach: 2 }, { planned: true }]) {
    const made = await madeSelection(madeObjects(400, 300), { ...shape, failAt: 3 })
    for (const options of COMBINATIONS) {
      await assert.rejects(collected(emit(made.selection, options, { signal })), { message: 'the disk is gone' })
      await assert.rejects(collected(emit(made.selection, options, { signal, compressor })), {
        message: 'the disk is gone',
      })
      assert.equal(made.open, 0)
    }
  }
  assert.ok((await compressor.deflate(Buffer.from('still usable'))).length > 0)
  compressor.close()
})

test('an abort rejects with its reason and frees everything, before the first pull and midway', async () => {
  for (const shape of [{ linesEach: 2 }, { planned: true }]) {
    const made = await madeSelection(randomObjects(300), { ...shape, blockBytes: 40_000 })
    for (const options of COMBINATIONS) {
      for (const pulls of [0, 1]) {
        const controller = new AbortController()
        const iterator = emit(made.selection, options, { signal: controller.signal })[Symbol.asyncIterator]()
        for (let i = 0; i < pulls; i++) assert.equal((await iterator.next()).done, false)
        controller.abort(new Error('the client is gone'))
        await assert.rejects(iterator.next(), { message: 'the client is gone' })
        assert.equal(made.open, 0)
      }
    }
  }
})

test('an early return frees everything, and nothing is read ahead of the pulls', async (t) => {
  // With more at once more is under way: by itself it is as much as there are cores.
  const compressor = new DeflatePool({ level: 1, concurrency: 2 })
  t.after(() => compressor.close())
  for (const shape of [{ linesEach: 2 }, { planned: true }]) {
    const made = await madeSelection(randomObjects(1_000), { ...shape, blockBytes: 500_000, chunkBytes: 500_000 })
    for (const options of COMBINATIONS) {
      made.pulls = 0
      for await (const buffer of emit(made.selection, options, { signal, compressor })) {
        assert.ok(buffer.length > 0)
        break
      }
      assert.equal(made.open, 0)
      assert.ok(made.pulls <= 2, `${made.pulls} pulls`)
    }
  }
})

test('small fragments leave in large buffers', async () => {
  const made = await madeSelection(madeObjects(20_000, 400), { blockBytes: 8_000 })
  const sizes: number[] = []
  for await (const buffer of emit(made.selection, { format: 'text', coding: 'gzip' }, { signal }))
    sizes.push(buffer.length)
  assert.ok(sizes.length <= 1 + sizes.reduce((sum, bytes) => sum + bytes, 0) / 200_000, sizes.join(' '))
})

test('a plan with missing bytes is an error, not a short response', async () => {
  const made = await madeSelection(madeObjects(20), { planned: true })
  const plan = made.selection.plan!
  const short = { ...made.selection, plan: { ...plan, rawBytes: plan.rawBytes + 5, storedBytes: plan.storedBytes + 5 } }
  for (const options of MEASURED) {
    await assert.rejects(collected(emit(short, options, { signal })), { code: 'corrupt_data' })
  }
})

test('a mask applies to lines in both codings, with and without a plan, and not to a JSON array', async () => {
  for (const shape of [{ linesEach: 2 }, { planned: true }]) {
    const made = await madeSelection(madeObjects(100), shape)
    const masked = made.text
      .toString()
      .split('\n')
      .slice(0, -1)
      .map((line) => {
        const [id, json] = line.split('\t')
        const { name } = JSON.parse(json) as { name: string }
        return `${id}\t${JSON.stringify({ id, name })}\n`
      })
    for (const coding of ['gzip', 'identity'] as const) {
      const sent = await decoded(made, { format: 'text', coding, mask: { include: ['name'] } })
      assert.equal(sent.toString(), masked.join(''))
    }
    assert.throws(
      () => emit(made.selection, { format: 'json', coding: 'gzip', mask: { include: ['name'] } }, { signal }),
      { code: 'not_supported' },
    )
  }
})
