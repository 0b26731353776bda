import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import { converted } from '../../src/async/relay.ts'
import { type AnswerBuffers, AnswerMemory } from '../../src/memory/answer-memory.ts'
import { MB } from '../../src/limits.ts'
import { SegmentReader } from '../../src/store/pack/segment-reader.ts'
import { gapBytesMax } from '../../src/store/pack/spans.ts'
import { PlanRowList, type PlanRows } from '../../src/store/plan/plan-format.ts'
import { checkRows, plannedRuns } from '../../src/store/plan/planned-runs.ts'
import { asyncOf, never } from './support.ts'

const BLOB = 'p/demo/pack'
const SEGMENT_BYTES = 3_000
const SEGMENTS = 5_000
const content: Buffer = randomBytes(SEGMENT_BYTES * SEGMENTS)

/** Rows of a plan, for each segment of the blob or some of them. */
function rowsOf(isWanted: (segment: number) => boolean = () => true): PlanRows {
  const rows = new PlanRowList()
  for (let at = 0; at < SEGMENTS; at++) {
    if (!isWanted(at)) continue
    const [start, end] = [at * SEGMENT_BYTES, (at + 1) * SEGMENT_BYTES]
    const storedCrc32 = crc32(content.subarray(start, end))
    rows.push(0, { start, end, rawBytes: 0, rawCrc32: 0, storedCrc32, objects: 1, idBytes: 32 })
  }
  return rows.followedBy(new PlanRowList())
}

/** The bytes of these rows as an answer reads them, compared with their checksums. */
function bytesOf(rows: PlanRows, reader: SegmentReader, buffers: AnswerBuffers): AsyncIterable<Uint8Array> {
  const { readBytesMax } = reader
  const runs = plannedRuns(rows, {
    firstRow: 0,
    endRow: rows.sources.length,
    bytesMax: () => Math.min(readBytesMax, buffers.roomBytes),
    gapBytesMax: gapBytesMax(readBytesMax),
    sourceOf: () => ({ blob: BLOB }),
  })
  return converted(
    () => reader.runs(runs, { signal: never, buffers }, (loaded) => checkRows(rows, loaded)),
    ({ bytes, readBytes }) => {
      buffers.passOn(readBytes)
      return bytes
    },
  )
}

/** The sizes of the reads, when everything is read from a store that prefers reads of this size. */
async function readSizes(readBytesPreferred: number, memoryBytes: number): Promise<number[]> {
  const { blobs } = memoryBackend()
  await blobs.put(BLOB, asyncOf([content]))
  const sizes: number[] = []
  const counting = {
    ...blobs,
    readBytesPreferred,
    read: (name: string, start: number, end: number) => {
      sizes.push(end - start)
      return blobs.read(name, start, end)
    },
  }
  const memory = new AnswerMemory(memoryBytes)
  const buffers = memory.open()
  const hash: Buffer[] = []
  const reader = new SegmentReader(counting, memory, REAL_ENVIRONMENT)
  for await (const bytes of bytesOf(rowsOf(), reader, buffers)) hash.push(Buffer.from(bytes))
  buffers.end()
  assert.ok(Buffer.concat(hash).equals(content), 'every byte, in order')
  assert.equal(memory.heldBytes, 0)
  return sizes
}

test('neighbouring segments are gathered into reads of the size that the blob store prefers', async () => {
  const large = await readSizes(4 * MB, 256 * MB)
  assert.equal(large.length, Math.ceil(content.length / (4 * MB)))
  const usual = await readSizes(MB, 256 * MB)
  assert.equal(usual.length, Math.ceil(content.length / MB))
})

test('the memory of responses bounds the reads, whatever the blob store prefers', async () => {
  const memoryBytes = 8 * MB
  const sizes = await readSizes(4 * MB, memoryBytes)
  assert.ok(
    Math.max(...sizes) <= memoryBytes / 4,
    `the largest of ${sizes.length} reads had ${Math.max(...sizes)} bytes`,
  )
  assert.ok(sizes.length < 40, `${sizes.length} reads for ${content.length} bytes`)
})

test('a response that is alone reads in pieces near the largest that the memory of responses allows', async () => {
  const memoryBytes = 12 * MB
  const sizes = await readSizes(4 * MB, memoryBytes)
  assert.ok(Math.max(...sizes) <= memoryBytes / 4)
  // With a quarter of the rest for each read there were eight.
  assert.ok(sizes.length < 8, `${sizes.length} reads for ${content.length} bytes`)
})

for (const fillsGivenMemory of [true, false])
  test(`segments with gaps between them leave without the gaps, ${fillsGivenMemory ? 'from memory that is used again' : 'and the memory of the store stays as it is'}`, async () => {
    const { blobs } = memoryBackend()
    await blobs.put(BLOB, asyncOf([content]))
    const reading = {
      ...blobs,
      readBytesPreferred: MB,
      read: async (name: string, start: number, end: number, { into }: { readonly into?: Uint8Array } = {}) => {
        const stored = await blobs.read(name, start, end)
        if (!fillsGivenMemory || into === undefined) return stored
        into.set(stored)
        return into
      },
    }
    const memory = new AnswerMemory(12 * MB)
    const reader = new SegmentReader(reading, memory, REAL_ENVIRONMENT)
    const everyThird = rowsOf((at) => at % 3 === 1)
    const expected = Buffer.concat(
      Array.from(everyThird.starts, (start) => content.subarray(start, start + SEGMENT_BYTES)),
    )
    for (const round of ['first', 'second']) {
      const buffers = memory.open()
      const read: Buffer[] = []
      for await (const bytes of bytesOf(everyThird, reader, buffers)) {
        read.push(Buffer.from(bytes))
        memory.bufferPool.giveBack(bytes)
      }
      buffers.end()
      assert.ok(Buffer.concat(read).equals(expected), `the ${round} time every byte, in order`)
    }
    assert.equal(memory.heldBytes, 0)
    assert.ok(memory.bufferPool.idleBytes > 0)
    const half = content.length / 2
    for (const start of [0, half])
      assert.ok(content.subarray(start, start + half).equals(await blobs.read(BLOB, start, start + half)))
  })

test('the source of a run is looked up when the run is read, and not while it waits for room', () => {
  let lookUps = 0
  const sourceOf = (): { readonly blob: string } => {
    lookUps++
    return { blob: BLOB }
  }
  const runs = plannedRuns(rowsOf(), {
    firstRow: 0,
    endRow: 9,
    bytesMax: () => SEGMENT_BYTES,
    gapBytesMax: 0,
    sourceOf,
  })
  const [first] = runs
  assert.equal(lookUps, 0)
  assert.deepEqual(first.source(), { blob: BLOB })
  assert.equal(lookUps, 1)
})

test('a response that is alone reads two pieces ahead, and one beside others', () => {
  const memory = new AnswerMemory(12 * MB)
  const alone = memory.open()
  assert.equal(alone.readsAhead, 2)
  const other = memory.open()
  assert.deepEqual([alone.readsAhead, other.readsAhead], [1, 1])
  other.end()
  assert.equal(alone.readsAhead, 2)
})
