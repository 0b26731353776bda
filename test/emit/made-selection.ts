import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { DeflatePool } from '../../src/compression/deflate-pool.ts'
import type { Fragment, PlannedSelection, Selection, SelectionReadOptions } from '../../src/object/selection.ts'

export interface MadeObject {
  readonly id: string
  readonly json: string
}

export interface MadeOptions {
  /** Bytes of lines in a block and in a buffer of lines. */
  readonly blockBytes?: number
  /** Bytes of the buffers in which a plan's stored bytes come. */
  readonly chunkBytes?: number
  /** Of so many blocks one comes as lines. */
  readonly linesEach?: number
  readonly planned?: boolean
  /** Thrown instead of the batch or buffer with this number. */
  readonly failAt?: number
  /** Milliseconds before each batch or buffer. */
  readonly delayMs?: number
  /** What each batch or buffer waits for. */
  readonly before?: () => Promise<void>
}

/** A selection over objects in memory, and what was done with it. */
export interface Made {
  readonly selection: Selection
  readonly text: Buffer
  readonly json: Buffer
  /** Iterators that were started and have not ended. */
  open: number
  pulls: number
}

export function madeObjects(count: number, jsonBytes = 60): MadeObject[] {
  return Array.from({ length: count }, (_, i) => {
    const id = createHash('md5')
      .update(`object ${i}`)
      .digest('hex')
      .slice(0, 1 + ((i * 7) % 32))
    const json = `{"id":"${id}","name":"Wand ä ${i}"`
    return {
      id,
      json: `${json},"pad":"${`${i}-`.repeat(jsonBytes).slice(0, Math.max(1, jsonBytes + (i % 5) - json.length))}"}`,
    }
  })
}

function lineOf({ id, json }: MadeObject): Buffer {
  return Buffer.from(`${id}\t${json}\n`)
}

function blocksOf(objects: readonly MadeObject[], blockBytes: number): Buffer[] {
  const blocks: Buffer[] = []
  let group: Buffer[] = []
  let bytes = 0
  for (const line of objects.map(lineOf)) {
    group.push(line)
    bytes += line.length
    if (bytes < blockBytes) continue
    blocks.push(Buffer.concat(group))
    group = []
    bytes = 0
  }
  if (group.length > 0) blocks.push(Buffer.concat(group))
  return blocks
}

async function fragmentsOf(blocks: readonly Buffer[], linesEach: number): Promise<Fragment[]> {
  const pool = new DeflatePool({ level: 6, concurrency: 2 })
  try {
    return await Promise.all(
      blocks.map(async (raw, i): Promise<Fragment> => {
        if (i % linesEach === linesEach - 1) return { lines: raw }
        return { deflated: Buffer.from(await pool.deflate(raw)), rawBytes: raw.length, crc32: crc32(raw) }
      }),
    )
  } finally {
    pool.close()
  }
}

export async function madeSelection(objects: readonly MadeObject[], options: MadeOptions = {}): Promise<Made> {
  const { blockBytes = 1_000, linesEach = Number.POSITIVE_INFINITY, planned = false } = options
  const blocks = blocksOf(objects, blockBytes)
  const fragments = await fragmentsOf(blocks, planned ? Number.POSITIVE_INFINITY : linesEach)
  const text = Buffer.concat(blocks)
  const made = { text, json: Buffer.from(`[${objects.map(({ json }) => json).join(',')}]`), open: 0, pulls: 0 }
  const inBatches: (readonly Fragment[])[] = []
  for (let at = 0; at < fragments.length; at += 3) inBatches.push(fragments.slice(at, at + 3))
  const selection: Selection = {
    objects: objects.length,
    missing: 0,
    missingIds: () => Promise.resolve([]),
    ...(planned ? { plan: madePlan(made, objects, blocks, fragments, options) } : {}),
    lines: (read) =>
      followed(
        made,
        blocks.map((block) => Buffer.from(block)),
        options,
        read,
      ),
    fragments: (read) => followed(made, inBatches, options, read),
    release: () => undefined,
  }
  return Object.assign(made, { selection })
}

function madePlan(
  made: Omit<Made, 'selection'>,
  objects: readonly MadeObject[],
  blocks: readonly Buffer[],
  fragments: readonly Fragment[],
  options: MadeOptions,
): PlannedSelection {
  const stored = Buffer.concat(
    fragments.map((fragment) => ('deflated' in fragment ? fragment.deflated : fragment.lines)),
  )
  const ids = objects.map(({ id }) => Buffer.byteLength(id))
  return {
    digest: 'ab',
    storedBytes: stored.length,
    rawBytes: made.text.length,
    crc32: crc32(made.text),
    idBytes: ids.reduce((sum, bytes) => sum + bytes, 0),
    stored: (start, end, read) =>
      followed(made, chunksOf(stored.subarray(start, end), options.chunkBytes ?? 700), options, read),
    linesFrom: (unit, offset, read) => {
      // As a store does: it can start only where a block does.
      let blockStart = 0
      let from = 0
      for (const [i, block] of blocks.entries()) {
        const bytes = unit === 'text' ? block.length : jsonBytes(block)
        if (offset < blockStart + bytes) {
          from = i
          break
        }
        blockStart += bytes
      }
      return {
        skip: offset - blockStart,
        lines: followed(
          made,
          blocks.slice(from).map((block) => Buffer.from(block)),
          options,
          read,
        ),
      }
    },
  }
}

function jsonBytes(lines: Buffer): number {
  let bytes = 0
  for (const line of lines.toString('latin1').split('\n').slice(0, -1)) bytes += line.length - line.indexOf('\t')
  return bytes
}

function chunksOf(bytes: Buffer, size: number): Buffer[] {
  const chunks: Buffer[] = []
  for (let at = 0; at < bytes.length; at += size) chunks.push(Buffer.from(bytes.subarray(at, at + size)))
  return chunks
}

async function* followed<T>(
  made: Omit<Made, 'selection'>,
  values: readonly T[],
  options: MadeOptions,
  read: SelectionReadOptions,
): AsyncGenerator<T> {
  const { signal } = read
  made.open++
  try {
    for (const [i, value] of values.entries()) {
      made.pulls++
      if (options.delayMs !== undefined) await aborted(options.delayMs, signal)
      await options.before?.()
      signal.throwIfAborted()
      if (i === options.failAt) throw new Error('the disk is gone')
      yield value
    }
  } finally {
    made.open--
  }
}

function aborted(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}

export async function collected(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const buffers: Uint8Array[] = []
  for await (const buffer of source) buffers.push(buffer)
  return Buffer.concat(buffers)
}
