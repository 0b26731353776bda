import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { pipeline, Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import type { ObjectText } from '../../client/index.ts'
import { StowageError } from '../../errors.ts'
import { DEFAULT_LIMITS } from '../../limits.ts'
import { quotedPath } from '../../object/id.ts'
import { inspectBatches } from '../../inspect/inspect.ts'
import { type FoundObject, JsonObjects, type ObjectReader } from './json-objects.ts'
import { LineObjects } from './line-objects.ts'

/** Stands for standard input in place of a file name. */
export const STDIN = '-'
const READ_BYTES = 262_144

export interface ObjectFile {
  /** Bytes of the file; `undefined` for a pipe. */
  readonly bytesTotal: number | undefined
  /** Bytes of it that were read so far. */
  readonly bytesRead: () => number
  /** The objects in batches, each with an id. To be read once. */
  readonly objects: AsyncIterable<readonly ObjectText[]>
}

/**
 * The objects of a file, or of standard input for `-`: a JSON array, consecutive JSON texts (NDJSON), or lines `<id>
 * TAB <json>`, each of them also as a gzip file. The first bytes tell which. An object without an id gets the one that
 * the server would give it. Memory is bounded by the largest object. Throws if the file does not exist; reading throws
 * `invalid_json`, `invalid_utf8` and `invalid_gzip`.
 */
export async function openObjectFile(path: string, signal: AbortSignal): Promise<ObjectFile> {
  const bytesTotal = path === STDIN ? undefined : await sizeOf(path)
  const source: Readable = path === STDIN ? process.stdin : createReadStream(path, { highWaterMark: READ_BYTES })
  // The reader receives the error, even before it asks for the first piece.
  source.on('error', () => undefined)
  signal.addEventListener('abort', () => source.destroy(signal.reason as Error), { once: true })
  let bytesRead = 0
  async function* counted(): AsyncGenerator<Buffer> {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      signal.throwIfAborted()
      bytesRead += chunk.length
      yield chunk
    }
  }
  return { bytesTotal, bytesRead: () => bytesRead, objects: identified(found(decoded(inflated(counted()))), signal) }
}

async function sizeOf(path: string): Promise<number | undefined> {
  try {
    const info = await stat(path)
    if (info.isDirectory())
      throw new StowageError('invalid_request', `${quotedPath(path)} is a folder; name a file, or - for standard input`)
    return info.isFile() ? info.size : undefined
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    throw new StowageError(
      'invalid_request',
      `there is no file ${quotedPath(path)}; name a file, or - for standard input`,
    )
  }
}

/** The contents of a gzip file (RFC 1952), and any other file unchanged. */
async function* inflated(chunks: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  const first = await firstBytes(chunks)
  async function* all(): AsyncGenerator<Buffer> {
    yield first
    yield* chunks
  }
  yield* first[0] === 0x1f && first[1] === 0x8b ? gunzipped(all()) : all()
}

async function* gunzipped(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const gunzip = createGunzip({ chunkSize: READ_BYTES })
  pipeline(Readable.from(chunks), gunzip, () => undefined)
  try {
    yield* gunzip as AsyncIterable<Buffer>
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code?.startsWith('Z_') !== true) throw cause
    throw new StowageError('invalid_gzip', 'the file starts like a gzip file but is incomplete or damaged', { cause })
  }
}

/** At least two bytes, if there are as many. */
async function firstBytes(chunks: AsyncGenerator<Buffer>): Promise<Buffer> {
  let first: Buffer = Buffer.alloc(0)
  while (first.length < 2) {
    const next = await chunks.next()
    if (next.done === true) break
    first = Buffer.concat([first, next.value])
  }
  return first
}

async function* decoded(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const decode = (chunk?: Uint8Array): string => {
    try {
      return chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true })
    } catch (cause) {
      throw new StowageError('invalid_utf8', 'the file is not UTF-8', { cause })
    }
  }
  for await (const chunk of chunks) yield decode(chunk)
  yield decode()
}

async function* found(texts: AsyncIterable<string>): AsyncGenerator<readonly FoundObject[]> {
  let reader: ObjectReader | undefined
  for await (const text of texts) {
    if (reader === undefined && text.trim() === '') continue
    reader ??= readerOf(text.trimStart()[0])
    const objects = reader.push(text)
    if (objects.length > 0) yield objects
  }
  const last = reader?.end() ?? []
  if (last.length > 0) yield last
}

function readerOf(firstCharacter: string): ObjectReader {
  if (firstCharacter === '[') return new JsonObjects('array')
  return firstCharacter === '{' ? new JsonObjects('sequence') : new LineObjects()
}

async function* identified(
  batches: AsyncIterable<readonly FoundObject[]>,
  signal: AbortSignal,
): AsyncGenerator<readonly ObjectText[]> {
  let before = 0
  for await (const batch of batches) {
    yield batch.every(hasId) ? batch : await withIds(batch, before, signal)
    before += batch.length
  }
}

/** The server's own code makes the ids, so that they are the same on every way into a project. */
async function withIds(
  batch: readonly FoundObject[],
  before: number,
  signal: AbortSignal,
): Promise<readonly ObjectText[]> {
  const nameless = batch.flatMap((object, at) =>
    hasId(object) ? [] : [{ bytes: Buffer.from(object.json), part: 0, index: before + at }],
  )
  const lines: string[] = []
  for await (const { lines: bytes } of inspectBatches(onlyBatch(nameless), DEFAULT_LIMITS, { signal }))
    lines.push(...Buffer.from(bytes).toString().split('\n').slice(0, -1))
  const named = lines
    .map((line) => ({ id: line.slice(0, line.indexOf('\t')), json: line.slice(line.indexOf('\t') + 1) }))
    .values()
  return batch.map((object) => (hasId(object) ? object : (named.next().value as ObjectText)))
}

function hasId(object: FoundObject): object is ObjectText {
  return object.id !== undefined
}

async function* onlyBatch<T>(batch: readonly T[]): AsyncGenerator<readonly T[]> {
  await Promise.resolve()
  yield batch
}
