import { crc32, gzipSync } from 'node:zlib'
import { DeflatePool } from '../../src/compression/deflate-pool.ts'
import { ElementSplitter } from '../../src/decode/splitter.ts'
import { DEFAULT_LIMITS } from '../../src/limits.ts'
import type { Element } from '../../src/object/element.ts'
import type { Fragment } from '../../src/object/selection.ts'
import { building } from '../model/building.ts'
import { jsonArray } from '../upload.ts'

/** One model in the shape that each step takes. */
export interface Input {
  /** A JSON array of all objects, and the same gzipped. */
  readonly json: Uint8Array
  readonly gzipped: Uint8Array
  readonly ids: readonly string[]
  readonly elements: readonly Element[]
  /** Lines of about 16 KB together, and each of these compressed. */
  readonly blocks: readonly Uint8Array[]
  readonly fragments: readonly Extract<Fragment, { readonly deflated: Uint8Array }>[]
}

const BLOCK_BYTES = 16_384
const LEVEL = 4

export async function prepareInput(objects: number): Promise<Input> {
  const model = [...building({ objects })].flat()
  const json = Buffer.from(jsonArray(model))
  const splitter = new ElementSplitter({ part: 0, limits: DEFAULT_LIMITS, tally: { objects: 0 } })
  const blocks = inBlocks(model.map((object) => Buffer.from(`${object.id}\t${object.json}\n`)))
  const pool = new DeflatePool({ level: LEVEL, concurrency: 2 })
  const fragments = await Promise.all(
    blocks.map(async (block) => ({ deflated: await pool.deflate(block), rawBytes: block.length, crc32: crc32(block) })),
  )
  pool.close()
  return {
    ids: model.map(({ id }) => id),
    json,
    gzipped: gzipSync(json),
    elements: splitter.push(json),
    blocks,
    fragments,
  }
}

function inBlocks(lines: readonly Uint8Array[]): Uint8Array[] {
  const blocks: Uint8Array[] = []
  let gathered: Uint8Array[] = []
  let bytes = 0
  for (const line of lines) {
    gathered.push(line)
    bytes += line.length
    if (bytes < BLOCK_BYTES) continue
    blocks.push(Buffer.concat(gathered))
    gathered = []
    bytes = 0
  }
  return gathered.length === 0 ? blocks : [...blocks, Buffer.concat(gathered)]
}
