import assert from 'node:assert/strict'
import { test } from 'node:test'
import { constants, crc32, deflateRawSync } from 'node:zlib'
import { DeltaEncoder } from '../../src/delta/encode.ts'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import { type BaseLine, DELTA_DEPTH_MAX, encodeDeltaBlock, inflateBlock } from '../../src/store/pack/delta-block.ts'

function deflated(raw: Uint8Array): Buffer {
  return deflateRawSync(raw, { finishFlush: constants.Z_FULL_FLUSH })
}

function deltaOf(base: Uint8Array, line: Uint8Array): Buffer {
  const encoder = new DeltaEncoder('', base, line)
  while (!encoder.advance(1_000));
  const json = encoder.take(crc32(line))
  assert.ok(json !== undefined)
  return Buffer.from(json)
}

function lineOf(version: number): Buffer {
  const ids = Array.from({ length: 400 }, (_, at) => `"ä${at === version ? 'new' : 'old'}-${at}"`)
  return Buffer.from(`root-${version}\t{"id":"root-${version}","below":[${ids.join()}]}\n`)
}

/** The first line in a block with another one before it, then each as a delta on the one before. */
function chain(versions: number) {
  const before = Buffer.from('a\t{"id":"a"}\n')
  const lines = Array.from({ length: versions }, (_, version) => lineOf(version))
  const first = deflated(Buffer.concat([before, lines[0]]))
  let pack = first
  let base: BaseLine = {
    blockStart: 0,
    blockStoredBytes: first.length,
    blockRawBytes: before.length + lines[0].length,
    lineStart: before.length,
    lineBytes: lines[0].length,
  }
  const blocks: Uint8Array[] = []
  for (let version = 1; version < versions; version++) {
    const delta = deltaOf(lines[version - 1], lines[version])
    const block = encodeDeltaBlock(base, delta.length, deflated(delta))
    const { length } = lines[version]
    base = {
      blockStart: pack.length,
      blockStoredBytes: block.length,
      blockRawBytes: length,
      lineStart: 0,
      lineBytes: length,
    }
    pack = Buffer.concat([pack, block])
    blocks.push(block)
  }
  const read = (start: number, end: number): Promise<Uint8Array> => Promise.resolve(pack.subarray(start, end))
  return { pack, lines, blocks, reading: { read, environment: REAL_ENVIRONMENT } }
}

test('each line of a chain of deltas is read, up to the deepest that is allowed', async () => {
  const { lines, blocks, reading } = chain(DELTA_DEPTH_MAX + 2)
  for (let version = 1; version <= DELTA_DEPTH_MAX; version++) {
    assert.ok(blocks[version - 1].length < lines[version].length / 10)
    const line = await inflateBlock(blocks[version - 1], lines[version].length, reading)
    assert.deepEqual(Buffer.from(line), lines[version])
  }
  await assert.rejects(inflateBlock(blocks[DELTA_DEPTH_MAX], lines[DELTA_DEPTH_MAX + 1].length, reading), {
    code: 'corrupt_data',
    message: /based on more than/,
  })
})

test('a block that is no delta is inflated', async () => {
  const { reading } = chain(1)
  assert.equal(
    Buffer.from(await inflateBlock(deflated(lineOf(3)), lineOf(3).length, reading)).toString(),
    String(lineOf(3)),
  )
})

test('no flipped bit in a delta or in its base leads to another line', async () => {
  const { pack, lines, blocks, reading } = chain(3)
  const last = blocks[1]
  for (let bit = 0; bit < last.length * 8; bit++) {
    const flipped = Uint8Array.from(last)
    flipped[bit >> 3] ^= 1 << (bit & 7)
    const read = await inflateBlock(flipped, lines[2].length, reading).catch((error: unknown) => {
      assert.equal((error as { code?: unknown }).code, 'corrupt_data', String(error))
      return undefined
    })
    if (read !== undefined) assert.deepEqual(Buffer.from(read), lines[2])
  }
  for (let bit = 0; bit < (pack.length - last.length) * 8; bit += 5) {
    pack[bit >> 3] ^= 1 << (bit & 7)
    const read = await inflateBlock(last, lines[2].length, reading).catch((error: unknown) => {
      assert.equal((error as { code?: unknown }).code, 'corrupt_data', String(error))
      return undefined
    })
    if (read !== undefined) assert.deepEqual(Buffer.from(read), lines[2])
    pack[bit >> 3] ^= 1 << (bit & 7)
  }
  await assert.rejects(inflateBlock(last, lines[2].length - 1, reading), { code: 'corrupt_data' })
})
