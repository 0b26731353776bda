import {
  BLOCK_BYTES,
  BLOCKS_MEDIA_TYPE,
  encodeBlockHeader,
  encodeEnd,
  encodeOpening,
  fitsBlock,
} from '../../blocks/ready-blocks.ts'
import type { ObjectText } from '../common/types.ts'

/** The part of Node's `zlib` that makes blocks. */
export interface BlockCompressor {
  deflateRaw(
    raw: Uint8Array,
    options: { readonly level: number; readonly finishFlush: number },
    done: (error: Error | null, fragment: Uint8Array<ArrayBuffer>) => void,
  ): void
  crc32(raw: Uint8Array): number
  readonly constants: { readonly Z_FULL_FLUSH: number }
}

/** The global names of a platform, of which only Node and its like have these. */
interface Platform {
  readonly process?: { readonly getBuiltinModule?: (name: string) => Partial<BlockCompressor> | undefined }
}

/** Fewer bytes would be compressed anew by the server. */
const BODY_BYTES_MIN: number = BLOCK_BYTES / 2
/** The thread pool has four threads by default. */
const COMPRESSED_AT_ONCE = 4
const LEVEL = 6
/** The tab and the line feed of a line. */
const LINE_FRAME_BYTES = 2
/** What the server would change, so that the text is not the one to compress. */
const CHANGED_BY_SERVER = /[\t\n\r\u0085\u2028\u2029]/

const encoder = new TextEncoder()

/**
 * The compressor of the platform: `undefined` in browsers. `CompressionStream` ends each output with a final block, so
 * it makes no fragments that others can follow.
 */
export function platformCompressor(platform: Platform = globalThis as Platform): BlockCompressor | undefined {
  const zlib = platform.process?.getBuiltinModule?.('node:zlib')
  return zlib?.deflateRaw === undefined || zlib.crc32 === undefined ? undefined : (zlib as BlockCompressor)
}

/**
 * The objects as ready blocks; `undefined` if they are too few, or if the server would not keep one of the texts byte
 * for byte.
 */
export async function blockBody(
  objects: readonly ObjectText[],
  compressor: BlockCompressor,
  bytesMin: number = BODY_BYTES_MIN,
): Promise<{ readonly body: Blob; readonly jsonBytes: number } | undefined> {
  if (!objects.every(isKept)) return undefined
  // Blocks are made as they are compressed: all texts of a batch once more would be megabytes.
  const blocks = inBlocks(objects)
  const total = { blocks: 0, rawBytes: 0, jsonBytes: 0 }
  const parts: (readonly Uint8Array<ArrayBuffer>[])[] = []
  const compressNext = async (): Promise<void> => {
    for (let next = blocks.next(); next.done !== true; next = blocks.next()) {
      const { raw, jsonBytes, objects: count } = next.value
      const at = total.blocks++
      total.rawBytes += raw.length
      total.jsonBytes += jsonBytes
      const stored = await compressed(raw, compressor)
      const header = { storedBytes: stored.length, rawBytes: raw.length, objects: count }
      parts[at] = [encodeBlockHeader({ ...header, rawCrc32: compressor.crc32(raw) }), stored]
    }
  }
  await Promise.all(Array.from({ length: COMPRESSED_AT_ONCE }, compressNext))
  if (total.rawBytes < bytesMin) return undefined
  const end = encodeEnd(total.blocks, objects.length)
  const body = new Blob([encodeOpening(), ...parts.flat(), end], { type: BLOCKS_MEDIA_TYPE })
  return { body, jsonBytes: total.jsonBytes }
}

function isKept({ id, json }: ObjectText): boolean {
  return !CHANGED_BY_SERVER.test(json) && !CHANGED_BY_SERVER.test(id) && json.startsWith('{') && json.endsWith('}')
}

interface RawBlock {
  readonly raw: Uint8Array
  readonly jsonBytes: number
  readonly objects: number
}

function* inBlocks(objects: readonly ObjectText[]): Generator<RawBlock, void, undefined> {
  let lines: Uint8Array[] = []
  let bytes = 0
  let jsonBytes = 0
  const close = (): RawBlock => {
    const block = { raw: joined(lines, bytes), jsonBytes, objects: lines.length }
    lines = []
    bytes = jsonBytes = 0
    return block
  }
  for (const { id, json } of objects) {
    const line = encoder.encode(`${id}\t${json}\n`)
    if (lines.length > 0 && !fitsBlock(bytes, line.length)) yield close()
    lines.push(line)
    bytes += line.length
    jsonBytes += line.length - LINE_FRAME_BYTES - encoder.encode(id).length
  }
  if (lines.length > 0) yield close()
}

function joined(lines: readonly Uint8Array[], bytes: number): Uint8Array {
  if (lines.length === 1) return lines[0]
  const raw = new Uint8Array(bytes)
  let at = 0
  for (const line of lines) {
    raw.set(line, at)
    at += line.length
  }
  return raw
}

function compressed(raw: Uint8Array, compressor: BlockCompressor): Promise<Uint8Array<ArrayBuffer>> {
  const options = { level: LEVEL, finishFlush: compressor.constants.Z_FULL_FLUSH }
  return new Promise((resolve, reject) => {
    compressor.deflateRaw(raw, options, (error, fragment) => (error === null ? resolve(fragment) : reject(error)))
  })
}
