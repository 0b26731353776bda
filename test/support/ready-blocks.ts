import { constants, crc32, deflateRawSync } from 'node:zlib'
import {
  BLOCK_BYTES,
  BLOCKS_MEDIA_TYPE,
  encodeBlockHeader,
  encodeEnd,
  encodeOpening,
} from '../../src/blocks/ready-blocks.ts'

/** One block of a body, with everything that its header says; a test may lie in any of it. */
export interface MadeBlock {
  readonly stored: Uint8Array
  readonly storedBytes: number
  readonly rawBytes: number
  readonly objects: number
  readonly rawCrc32: number
}

export function lineOf(json: string): string {
  return `${(JSON.parse(json) as { readonly id: string }).id}\t${json}\n`
}

/** Raw DEFLATE that is not final and ends on a byte boundary. */
export function fragment(raw: Uint8Array): Uint8Array {
  return deflateRawSync(raw, { level: 6, finishFlush: constants.Z_FULL_FLUSH })
}

export function blockOf(lines: string | Uint8Array, changed: Partial<MadeBlock> = {}): MadeBlock {
  const raw = Buffer.from(lines)
  const stored = changed.stored ?? fragment(raw)
  const objects = raw.toString('latin1').split('\n').length - 1
  return { stored, storedBytes: stored.length, rawBytes: raw.length, objects, rawCrc32: crc32(raw), ...changed }
}

/** Lines in blocks as the client makes them. */
export function inBlocks(jsons: readonly string[], blockBytes: number = BLOCK_BYTES): MadeBlock[] {
  const blocks: MadeBlock[] = []
  let open = ''
  for (const json of jsons) {
    const line = lineOf(json)
    if (open !== '' && Buffer.byteLength(open) + Buffer.byteLength(line) > blockBytes) {
      blocks.push(blockOf(open))
      open = ''
    }
    open += line
  }
  if (open !== '') blocks.push(blockOf(open))
  return blocks
}

export function bodyOf(blocks: readonly MadeBlock[], end?: Uint8Array): Buffer {
  const objects = blocks.reduce((sum, block) => sum + block.objects, 0)
  return Buffer.concat([
    encodeOpening(),
    ...blocks.flatMap((block) => [encodeBlockHeader(block), block.stored]),
    end ?? encodeEnd(blocks.length, objects),
  ])
}

export function blockUpload(body: Uint8Array): RequestInit {
  return { method: 'POST', headers: { 'Content-Type': BLOCKS_MEDIA_TYPE }, body: new Uint8Array(body) }
}
