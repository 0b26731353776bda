import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createGunzip, gunzipSync } from 'node:zlib'
import { emit, type EmitOptions } from '../../src/emit/emit.ts'
import { collected, madeObjects, madeSelection } from './made-selection.ts'

const signal = new AbortController().signal
const LINE = ':heartbeat\n'
const heartbeat = { intervalMs: 20, line: Buffer.from(LINE) }

function textOptions(coding: 'gzip' | 'identity'): EmitOptions {
  return { format: 'text', coding, heartbeat }
}

test('a slow source gets heartbeats between its lines, in both codings, with and without a plan', async () => {
  for (const shape of [{ linesEach: 2 }, { planned: true }]) {
    for (const coding of ['gzip', 'identity'] as const) {
      const made = await madeSelection(madeObjects(40), { ...shape, delayMs: 70, blockBytes: 1_500 })
      const sent = await collected(emit(made.selection, textOptions(coding), { signal }))
      const parts = (coding === 'gzip' ? gunzipSync(sent) : sent).toString().split(LINE)
      assert.ok(parts.length >= 3, `${parts.length - 1} heartbeats`)
      assert.equal(parts.join(''), made.text.toString())
      for (const part of parts) assert.ok(part === '' || part.endsWith('\n'))
    }
  }
})

test('a quick source gets none', async () => {
  const made = await madeSelection(madeObjects(500), { linesEach: 2 })
  for (const coding of ['gzip', 'identity'] as const) {
    const sent = await collected(emit(made.selection, { ...textOptions(coding), heartbeat: { ...heartbeat, intervalMs: 5_000 } }, { signal }))
    assert.equal((coding === 'gzip' ? gunzipSync(sent) : sent).toString(), made.text.toString())
  }
})

test('in gzip a heartbeat brings everything that was held back', async () => {
  const made = await madeSelection(madeObjects(30), { delayMs: 60, blockBytes: 300, linesEach: 2 })
  const gunzip = createGunzip()
  let seen = ''
  gunzip.on('data', (bytes: Buffer) => (seen += bytes.toString()))
  let objectsBeforeTheEnd = 0
  for await (const buffer of emit(made.selection, textOptions('gzip'), { signal })) {
    await new Promise((resolve) => gunzip.write(buffer, resolve))
    if (made.open > 0) objectsBeforeTheEnd = seen.replaceAll(LINE, '').split('\n').length
  }
  assert.ok(objectsBeforeTheEnd > 3, `${objectsBeforeTheEnd} objects`)
})

test('returning after a heartbeat stops a source that is at work', async () => {
  for (const coding of ['gzip', 'identity'] as const) {
    const made = await madeSelection(madeObjects(40), { delayMs: 60_000 })
    for await (const buffer of emit(made.selection, textOptions(coding), { signal })) {
      assert.ok(buffer.length > 0)
      break
    }
    assert.equal(made.open, 0)
  }
})

test('an abort between heartbeats, and a source that fails after one', async () => {
  for (const coding of ['gzip', 'identity'] as const) {
    const slow = await madeSelection(madeObjects(40), { delayMs: 60_000 })
    const controller = new AbortController()
    setTimeout(() => controller.abort(new Error('the client is gone')), 70)
    await assert.rejects(collected(emit(slow.selection, textOptions(coding), { signal: controller.signal })), { message: 'the client is gone' })
    const failing = await madeSelection(madeObjects(40), { delayMs: 50, failAt: 1, blockBytes: 200 })
    await assert.rejects(collected(emit(failing.selection, textOptions(coding), { signal })), { message: 'the disk is gone' })
    assert.equal(slow.open + failing.open, 0)
  }
})

test('a heartbeat that cannot be is refused', async () => {
  const { selection } = await madeSelection(madeObjects(1))
  for (const wrong of [{ intervalMs: 0, line: heartbeat.line }, { intervalMs: 5, line: Buffer.alloc(70_000) }]) {
    assert.throws(() => emit(selection, { ...textOptions('gzip'), heartbeat: wrong }, { signal }), RangeError)
  }
  assert.throws(() => emit(selection, { format: 'json', coding: 'gzip', heartbeat }, { signal }), { code: 'not_supported' })
})
