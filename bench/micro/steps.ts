import { DeflatePool } from '../../src/compression/deflate-pool.ts'
import { ElementSplitter } from '../../src/decode/splitter.ts'
import { decodeUpload } from '../../src/decode/decode-upload.ts'
import { gzipFromFragments } from '../../src/emit/gzip.ts'
import { DEFAULT_LIMITS } from '../../src/limits.ts'
import type { Element } from '../../src/object/element.ts'
import { inspectBatches } from '../../src/inspect/inspect.ts'
import { parseContentType } from '../../src/decode/header-value.ts'
import type { Fragment } from '../../src/object/selection.ts'
import type { Input } from './input.ts'

export interface Step {
  readonly name: string
  /** The units that one run does: MB of JSON, those of the input, by default. */
  readonly amount?: number
  readonly unit?: string
  /** Does the step once over the whole input. */
  run(): Promise<void>
}

const CHUNK_BYTES = 65_536
const ELEMENTS_A_BATCH = 200
const FRAGMENTS_A_BATCH = 64

export function createSteps(input: Input): readonly Step[] {
  const { signal } = new AbortController()
  return [
    { name: 'scan and split', run: () => split(input) },
    { name: 'inflate, scan and split', run: () => consume(decodeUpload(uploadOf(input), DEFAULT_LIMITS, { signal })) },
    {
      name: 'inspect',
      run: () => consume(inspectBatches(slices(input.elements, ELEMENTS_A_BATCH), DEFAULT_LIMITS, { signal })),
    },
    { name: 'build blocks, level 1', run: () => compress(input, 1) },
    { name: 'build blocks, level 4', run: () => compress(input, 4) },
    { name: 'splice', run: () => splice(input, signal) },
  ]
}

async function split({ json }: Input): Promise<void> {
  const splitter = new ElementSplitter({ part: 0, limits: DEFAULT_LIMITS, tally: { objects: 0 } })
  for (let at = 0; at < json.length; at += CHUNK_BYTES) splitter.push(json.subarray(at, at + CHUNK_BYTES))
  splitter.end()
}

async function compress({ blocks }: Input, level: number): Promise<void> {
  const pool = new DeflatePool({ level, concurrency: 2 })
  await Promise.all(blocks.map((block) => pool.deflate(block)))
  pool.close()
}

async function splice({ fragments }: Input, signal: AbortSignal): Promise<void> {
  const compressor = new DeflatePool({ level: 1, concurrency: 2 })
  await consume(gzipFromFragments(slices<Fragment>(fragments, FRAGMENTS_A_BATCH), { compressor, signal }))
  compressor.close()
}

function uploadOf({ gzipped }: Input): Parameters<typeof decodeUpload>[0] {
  return {
    contentType: parseContentType('application/gzip'),
    contentEncoding: undefined,
    contentLength: gzipped.length,
    body: slicesOfBytes(gzipped),
  }
}

async function* slicesOfBytes(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) yield bytes.subarray(at, at + CHUNK_BYTES)
}

async function* slices<T extends Element | Fragment>(
  values: readonly T[],
  size: number,
): AsyncGenerator<readonly T[], void, undefined> {
  for (let at = 0; at < values.length; at += size) yield values.slice(at, at + size)
}

async function consume(values: AsyncIterable<unknown>): Promise<void> {
  const iterator = values[Symbol.asyncIterator]()
  while (!(await iterator.next()).done);
}
