import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { finished } from 'node:stream/promises'
import { test } from 'node:test'
import { createGunzip, gunzipSync } from 'node:zlib'
import { emit, type EmitOptions } from '../../src/emit/emit.ts'
import { eventually } from '../support/patience.ts'
import { collected, madeObjects, madeSelection } from './made-selection.ts'

const signal = new AbortController().signal
const LINE = ':heartbeat\n'
const heartbeat = { intervalMs: 5, line: Buffer.from(LINE) }

function textOptions(coding: 'gzip' | 'identity'): EmitOptions {
  return { format: 'text', coding, heartbeat }
}

/** As a source that is slow: it goes on when the reader has got two more. */
async function twoMoreHeartbeats(told: { readonly text: string }): Promise<void> {
  const heartbeats = (): number => told.text.split(LINE).length
  const enough = heartbeats() + 2
  await eventually(() => heartbeats() >= enough, 'heartbeats come while nothing else does')
}

/** What a reader can make of each piece as it comes. */
async function* textsOf(sent: AsyncIterable<Uint8Array>, coding: 'gzip' | 'identity'): AsyncGenerator<string> {
  const reader = coding === 'gzip' ? createGunzip() : new PassThrough()
  let text = ''
  reader.on('data', (bytes: Buffer) => (text += bytes.toString()))
  for await (const buffer of sent) {
    await new Promise((resolve) => reader.write(buffer, resolve))
    yield text
    text = ''
  }
  await finished(reader.end())
  yield text
}

test('a slow source gets heartbeats between lines, in both codings, with and without a plan', async () => {
  for (const shape of [{ linesEach: 2 }, { planned: true }]) {
    for (const coding of ['gzip', 'identity'] as const) {
      const told = { text: '' }
      const made = await madeSelection(madeObjects(40), {
        ...shape,
        before: () => twoMoreHeartbeats(told),
        blockBytes: 1_500,
      })
      for await (const text of textsOf(emit(made.selection, textOptions(coding), { signal }), coding)) told.text += text
      const parts = told.text.split(LINE)
      assert.ok(parts.length > 2, `${parts.length - 1} heartbeats`)
      assert.equal(parts.join(''), made.text.toString())
      for (const part of parts) assert.ok(part === '' || part.endsWith('\n'))
    }
  }
})

test('a quick source gets no heartbeats', async () => {
  const made = await madeSelection(madeObjects(500), { linesEach: 2 })
  for (const coding of ['gzip', 'identity'] as const) {
    const sent = await collected(
      emit(made.selection, { ...textOptions(coding), heartbeat: { ...heartbeat, intervalMs: 5_000 } }, { signal }),
    )
    assert.equal((coding === 'gzip' ? gunzipSync(sent) : sent).toString(), made.text.toString())
  }
})

test('a gzip heartbeat flushes everything that was buffered', async () => {
  const told = { text: '' }
  const made = await madeSelection(madeObjects(30), {
    before: () => twoMoreHeartbeats(told),
    blockBytes: 300,
    linesEach: 2,
  })
  let objectsBeforeTheEnd = 0
  for await (const text of textsOf(emit(made.selection, textOptions('gzip'), { signal }), 'gzip')) {
    told.text += text
    if (made.open > 0) objectsBeforeTheEnd = told.text.replaceAll(LINE, '').split('\n').length
  }
  assert.ok(objectsBeforeTheEnd > 3, `${objectsBeforeTheEnd} objects`)
})

test('a return after a heartbeat stops a busy source', async () => {
  for (const coding of ['gzip', 'identity'] as const) {
    const made = await madeSelection(madeObjects(40), { delayMs: 60_000 })
    for await (const buffer of emit(made.selection, textOptions(coding), { signal })) {
      assert.ok(buffer.length > 0)
      break
    }
    assert.equal(made.open, 0)
  }
})

test('an abort between heartbeats and a source that fails after one end the stream', async () => {
  for (const coding of ['gzip', 'identity'] as const) {
    const slow = await madeSelection(madeObjects(40), { delayMs: 60_000 })
    const controller = new AbortController()
    const leaving = async (): Promise<void> => {
      for await (const _ of emit(slow.selection, textOptions(coding), { signal: controller.signal }))
        controller.abort(new Error('the client is gone'))
    }
    await assert.rejects(leaving, { message: 'the client is gone' })
    const failing = await madeSelection(madeObjects(40), { delayMs: 50, failAt: 1, blockBytes: 200 })
    await assert.rejects(collected(emit(failing.selection, textOptions(coding), { signal })), {
      message: 'the disk is gone',
    })
    assert.equal(slow.open + failing.open, 0)
  }
})

test('an invalid heartbeat is refused', async () => {
  const { selection } = await madeSelection(madeObjects(1))
  for (const wrong of [
    { intervalMs: 0, line: heartbeat.line },
    { intervalMs: 5, line: Buffer.alloc(70_000) },
  ]) {
    assert.throws(() => emit(selection, { ...textOptions('gzip'), heartbeat: wrong }, { signal }), RangeError)
  }
  assert.throws(() => emit(selection, { format: 'json', coding: 'gzip', heartbeat }, { signal }), {
    code: 'not_supported',
  })
})
