import assert from 'node:assert/strict'
import { constants, crc32, gunzipSync, inflateRawSync } from 'node:zlib'
import * as fc from 'fast-check'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { BLOCK_HEADER_BYTES, decodeBlockHeader, OPENING_BYTES } from '../../src/blocks/ready-blocks.ts'
import type { ObjectService } from '../../src/index.ts'
import type { StorageBackend } from '../../src/storage/backend.ts'
import { checkStore } from '../../src/store/upkeep/check.ts'
import { openService } from '../http/served.ts'
import { blockOf, blockUpload, bodyOf, inBlocks, type MadeBlock } from '../support/ready-blocks.ts'

const IDS = 60
const ROOT = 'root'
/** Bytes that mean something to one of the stages. */
const TELLING = [
  '\n',
  '\t',
  '\r',
  '"',
  '\\',
  '{',
  '}',
  ',',
  '\u2028',
  '\u0085',
  '\u0000',
  '\u00ff',
  '{"id":"o1"}',
  'o2\t',
]

/** A change of a valid upload. */
type Change =
  | { readonly of: 'blocks'; readonly apply: (blocks: readonly MadeBlock[]) => MadeBlock[] }
  | { readonly of: 'bytes'; readonly apply: (body: Buffer) => Buffer }

/** One upload: its body, and whether nothing in it was changed. */
export interface FuzzedUpload {
  readonly body: Buffer
  readonly isValid: boolean
}

const texts: fc.Arbitrary<string[]> = fc.array(
  fc
    .tuple(fc.nat(IDS - 1), fc.nat(2), fc.oneof(fc.nat(200), fc.nat(200), fc.nat(3_000), fc.nat(20_000)))
    .map(([n, version, size]) => textOf(n, version, size)),
  { minLength: 1, maxLength: 30 },
)

/** Digits that compress little, so that blocks are of any size. */
function textOf(n: number, version: number, size: number): string {
  let digits = ''
  for (let state = n * 31 + version * 7 + 1; digits.length < size; state = (state * 48_271) % 2_147_483_647)
    digits += state.toString(36)
  return JSON.stringify({ id: `o${n}`, version, child: { referencedId: `o${(n * 7) % IDS}` }, digits })
}

export const fuzzedUploads: fc.Arbitrary<FuzzedUpload> = fc
  .tuple(texts, fc.constantFrom(16_384, 16_384, 9_000, 500), fc.array(changes(), { maxLength: 2 }))
  .map(([jsons, blockBytes, made]) => {
    const blocks = inBlocks(jsons, blockBytes)
    const end = bodyOf(blocks).subarray(-BLOCK_HEADER_BYTES)
    const isEndKept = made.some(({ of }) => of === 'blocks') && jsons.length % 2 === 0
    const changed = made.reduce((all, change) => (change.of === 'blocks' ? change.apply(all) : all), blocks)
    const body = made.reduce(
      (bytes, change) => (change.of === 'bytes' ? change.apply(bytes) : bytes),
      bodyOf(changed, isEndKept ? end : undefined),
    )
    return { body, isValid: made.length === 0 }
  })

function changes(): fc.Arbitrary<Change> {
  const place = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true })
  const field = fc.constantFrom('storedBytes', 'rawBytes', 'objects', 'rawCrc32')
  const number = fc.oneof(fc.constantFrom(0, 1, 16_384, 16_385, 2 ** 31, 2 ** 32 - 1), fc.nat(20_000))
  const bytes = fc.tuple(
    place,
    place,
    fc.uint8Array({ maxLength: 12 }),
    fc.constantFrom('flip', 'cut', 'insert', 'copy'),
  )
  const ofBlocks = fc.oneof(
    fc.tuple(place, field, number).map(([at, name, value]) => one(at, (block) => ({ ...block, [name]: value }))),
    fc
      .tuple(place, field, fc.integer({ min: -3, max: 3 }))
      .map(([at, name, step]) => one(at, (block) => ({ ...block, [name]: (block[name] + step) >>> 0 }))),
    fc.tuple(place, bytes).map(([at, change]) =>
      one(at, (block) => {
        const stored = withBytes(Buffer.from(block.stored), change)
        return { ...block, stored, storedBytes: stored.length }
      }),
    ),
    fc.tuple(place, place, fc.constantFrom(...TELLING), fc.boolean()).map(([at, where, text, isCounted]) =>
      one(at, (block) => {
        const raw = inflated(block.stored)
        const cut = Math.floor(where * raw.length)
        const changed = Buffer.concat([raw.subarray(0, cut), Buffer.from(text, 'latin1'), raw.subarray(cut)])
        return blockOf(changed, isCounted ? {} : { objects: block.objects })
      }),
    ),
    fc.tuple(place, place).map(([from, to]) => (blocks: readonly MadeBlock[]) => {
      if (blocks.length === 0) return []
      const copy = [...blocks]
      copy.splice(Math.floor(to * copy.length), 0, blocks[Math.floor(from * blocks.length)])
      return copy
    }),
    place.map((at) => (blocks: readonly MadeBlock[]) => blocks.filter((_, i) => i !== Math.floor(at * blocks.length))),
  )
  return fc.oneof(
    ofBlocks.map((apply): Change => ({ of: 'blocks', apply })),
    bytes.map((change): Change => ({ of: 'bytes', apply: (body) => withBytes(body, change) })),
  )
}

/** As far as it goes: the block may have been changed before. */
function inflated(stored: Uint8Array): Buffer {
  try {
    return inflateRawSync(stored, { finishFlush: constants.Z_SYNC_FLUSH })
  } catch {
    return Buffer.from('{}')
  }
}

function one(at: number, change: (block: MadeBlock) => MadeBlock): (blocks: readonly MadeBlock[]) => MadeBlock[] {
  return (blocks) => blocks.map((block, i) => (i === Math.floor(at * blocks.length) ? change(block) : block))
}

function withBytes(bytes: Buffer, [at, until, other, kind]: readonly [number, number, Uint8Array, string]): Buffer {
  const start = Math.floor(at * bytes.length)
  const end = Math.min(bytes.length, start + Math.floor(until * 40))
  if (kind === 'cut') return Buffer.concat([bytes.subarray(0, start), bytes.subarray(end)])
  if (kind === 'insert') return Buffer.concat([bytes.subarray(0, start), other, bytes.subarray(start)])
  if (kind === 'copy') return Buffer.concat([bytes.subarray(0, end), bytes.subarray(start)])
  const flipped = Buffer.from(bytes)
  if (flipped.length > 0) flipped[start] ^= 1 << (end % 8)
  return flipped
}

/** A server for uploads of ready blocks, and what it must hold after them. */
export class FuzzedBlocks {
  readonly #backend: StorageBackend = memoryBackend()
  readonly #failures: unknown[] = []
  readonly #service: ObjectService
  readonly #held = new Map<string, string>()
  #accepted = 0

  constructor() {
    this.#service = openService({
      backend: this.#backend,
      onError: (error) => void (error.statusCode >= 500 && this.#failures.push(error)),
      limits: { objectBytesMax: 100_000, inflatedBytesMax: 1_000_000, requestBytesMax: 1_000_000 },
    })
  }

  get accepted(): number {
    return this.#accepted
  }

  /** It is stored as a plain reading of its bytes says, or refused as 4xx with nothing stored. */
  async upload({ body, isValid }: FuzzedUpload): Promise<void> {
    const answer = await this.#ask('/objects/p', blockUpload(body))
    const text = await answer.text()
    assert.deepEqual(this.#failures, [])
    if (answer.status !== 200) {
      assert.ok(!isValid && [400, 413].includes(answer.status), `${answer.status} ${text}`)
      return
    }
    this.#accepted += 1
    for (const [id, json] of plainReading(body)) if (!this.#held.has(id)) this.#held.set(id, json)
  }

  /** Every object is as it was first uploaded, alone and in a graph; the storage has no damage. */
  async holds(): Promise<void> {
    const ids = [...this.#held.keys()]
    const root = JSON.stringify({ id: ROOT, children: ids.map((referencedId) => ({ referencedId })) })
    for (const [id, json] of this.#held) {
      const single = await this.#ask(`/objects/p/${encodeURIComponent(id)}/single`)
      assert.equal(await single.text(), json)
    }
    const list = await this.#ask('/api/getobjects/p', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Accept: 'text/plain', 'Accept-Encoding': 'gzip' },
      body: JSON.stringify({ objects: ids }),
    })
    this.#assertLines(Buffer.from(await list.arrayBuffer()), [...this.#held])
    await this.#ask('/objects/p', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: `[${root}]`,
    })
    const graph = await this.#ask(`/objects/p/${ROOT}`, {
      headers: { Accept: 'text/plain', 'Accept-Encoding': 'gzip' },
    })
    const below = Buffer.from(await graph.arrayBuffer())
    assert.equal(graph.status, 200)
    assert.ok(gunzipSync(below).length > 0)
    for await (const finding of checkStore(this.#backend)) assert.fail(JSON.stringify(finding))
    await this.#service.close()
  }

  #assertLines(gzip: Buffer, held: readonly (readonly [string, string])[]): void {
    const lines = gunzipSync(gzip).toString('utf8').split('\n').slice(0, -1)
    assert.deepEqual(lines.toSorted(), held.map(([id, json]) => `${id}\t${json}`).toSorted())
  }

  #ask(path: string, init?: RequestInit): Promise<Response> {
    return this.#service.fetch(new Request(`http://in.process${path}`, init))
  }
}

/** The objects of a body, read without any of the code under test but the layout; fails for what must be refused. */
function plainReading(body: Buffer): [id: string, json: string][] {
  const objects: [string, string][] = []
  let at = OPENING_BYTES
  for (;;) {
    const { storedBytes, rawBytes, objects: count, rawCrc32 } = decodeBlockHeader(body.subarray(at))
    at += BLOCK_HEADER_BYTES
    if (storedBytes === 0) break
    const stored = body.subarray(at, at + storedBytes)
    at += storedBytes
    const raw = inflateRawSync(stored, { finishFlush: constants.Z_SYNC_FLUSH })
    assert.deepEqual([raw.length, crc32(raw)], [rawBytes, rawCrc32])
    const lines = raw.toString('utf8').split('\n')
    assert.deepEqual([lines.length, lines.at(-1)], [count + 1, ''])
    for (const line of lines.slice(0, -1)) {
      const [id, json, ...more] = line.split('\t')
      assert.equal(more.length, 0)
      assert.equal((JSON.parse(json) as { readonly id?: unknown }).id, id)
      objects.push([id, json])
    }
  }
  assert.equal(at, body.length)
  return objects
}
