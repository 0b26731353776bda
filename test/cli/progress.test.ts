import assert from 'node:assert/strict'
import { test } from 'node:test'
import { transferText } from '../../src/cli/commands/download.ts'
import { hasBar, lineProgress, objectsState, ProgressText } from '../../src/cli/client/progress.ts'
import { RateMeter } from '../../src/cli/client/rate.ts'
import { formatDuration } from '../../src/cli/common/format.ts'

const MB = 1_048_576

test('a bar appears only on terminals that can move the cursor', () => {
  assert.deepEqual(
    [
      hasBar({ isTTY: true }, { TERM: 'xterm' }),
      hasBar({ isTTY: true }, {}),
      hasBar({ isTTY: true }, { TERM: 'dumb' }),
      hasBar({}, { TERM: 'xterm' }),
    ],
    [true, true, false, false],
  )
})

test('the bar shows the rate and the remaining time, and skipped bytes improve neither', () => {
  const story = new ProgressText(0)
  assert.equal(story.bar(0, 0), '')
  story.update({ done: 20 * MB, total: 100 * MB, skipped: 20 * MB, text: '1 object' }, 500)
  assert.equal(story.bar(0.2, 500), '█████░░░░░░░░░░░░░░░░░░░  20 % 1 object')
  story.update({ done: 28 * MB, total: 100 * MB, skipped: 20 * MB, text: '9 objects' }, 4_000)
  assert.equal(story.bar(0.28, 4_000), '███████░░░░░░░░░░░░░░░░░  28 % 2.0 MB/s, 36 s left, 9 objects')
  story.update({ done: 100 * MB, total: 100 * MB, skipped: 20 * MB, text: 'all' }, 8_000)
  assert.equal(story.bar(1, 8_000), '████████████████████████ 100 % 10.0 MB/s, all')
})

test('without a total, the bar shows a rate and no remaining time', () => {
  const story = new ProgressText(0)
  story.update({ done: 4 * MB, total: undefined, text: 'some' }, 2_000)
  assert.equal(story.bar(0, 2_000), '2.0 MB/s, some')
})

test('a wait replaces the rate until progress resumes', () => {
  const story = new ProgressText(0)
  story.update({ done: MB, total: 2 * MB, text: 'half' }, 1_000)
  story.wait({ text: 'waiting for http://there (ECONNREFUSED)', leftMs: 300_000 }, 2_000)
  story.wait({ text: 'waiting for http://there (ECONNREFUSED)', leftMs: 310_000 }, 3_000)
  assert.equal(
    story.bar(0.5, 32_000),
    '████████████░░░░░░░░░░░░  50 % waiting for http://there (ECONNREFUSED), for 4 min 30 s more',
  )
  assert.equal(story.line(302_000), 'waiting for http://there (ECONNREFUSED), for 0 s more')
  story.update({ done: 2 * MB, total: 2 * MB, text: 'all' }, 303_000)
  assert.match(story.bar(1, 303_000), /100 % .*all$/)
})

test('a log gets a line soon after a wait begins, then one every ten seconds', () => {
  const lines: string[] = []
  let nowMs = 0
  const progress = lineProgress(
    (line) => lines.push(line),
    () => nowMs,
  )
  for (; nowMs <= 30_000; nowMs += 1_000) {
    if (nowMs < 12_000) progress.update({ done: nowMs, total: 100_000, text: 'moving' })
    else progress.wait({ text: 'waiting', leftMs: 100_000 - nowMs })
  }
  assert.deepEqual(lines, [
    '10 %: 1000 bytes/s, 1 min 30 s left, moving',
    'waiting, for 1 min 26 s more',
    'waiting, for 1 min 16 s more',
  ])
})

test('copies, imports, mirrors and restores show how many objects they have seen, and no rate of bytes', () => {
  const story = new ProgressText(0)
  for (let second = 1; second <= 20; second++)
    story.update(objectsState({ objects: second * 3_000, sent: second * 1_500 }, 'big'), second * 1_000)
  assert.equal(story.line(20_000), 'big: 60,000 objects, 30,000 new')
  assert.equal(story.bar(0, 20_000), 'big: 60,000 objects, 30,000 new')
})

test('the rate covers the last ten seconds and falls while nothing moves', () => {
  const meter = new RateMeter(0)
  meter.add(5_000, 500)
  assert.equal(meter.bytesPerSecond(900), undefined)
  for (let second = 1; second <= 60; second++) meter.add(second * 1_000_000, second * 1_000)
  assert.equal(meter.bytesPerSecond(60_000), 1_000_000)
  assert.equal(meter.bytesPerSecond(70_000), 500_000)
})

test('durations are shown in their two largest units', () => {
  assert.deepEqual([-5, 400, 59_600, 61_000, 120_000, 7_500_000, 90_000_000].map(formatDuration), [
    '0 s',
    '0 s',
    '1 min',
    '1 min 1 s',
    '2 min',
    '2 h 5 min',
    '1 d 1 h',
  ])
})

test('a download summary counts lost connections and restarts separately, with the right plural', () => {
  const progress = { objects: 1, cached: 0, receivedBytes: 5, totalBytes: 5, keptBytes: 0, resumes: 0, restarts: 0 }
  assert.equal(transferText(progress), '1 object, 5 bytes received')
  assert.equal(transferText({ ...progress, resumes: 1 }), '1 object, 5 bytes received, connection lost 1 time')
  assert.equal(
    transferText({ ...progress, objects: 2, resumes: 2, restarts: 1 }),
    '2 objects, 5 bytes received, connection lost 2 times, restarted 1 time',
  )
})
