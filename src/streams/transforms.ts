import { isUtf8 } from 'node:buffer'
import type { Duplex } from 'node:stream'
import { Yielder } from '../async/yielder.ts'
import { gunzip } from '../decode/gunzip.ts'
import { parseContentType } from '../decode/header-value.ts'
import { decodeIdList } from '../decode/id-list.ts'
import { ElementSplitter } from '../decode/splitter.ts'
import { REAL_ENVIRONMENT } from '../environment.ts'
import { StowageError } from '../errors.ts'
import { jsonFault } from '../inspect/json-fault.ts'
import { DEFAULT_LIMITS } from '../limits.ts'
import { BatchDuplex, type TransformOptions } from './batch-duplex.ts'
import { linesOf } from './lines.ts'

/** Options for reading objects from a text. */
export interface ParseObjectsOptions extends TransformOptions {
  /** A JSON array, or one object a line. By default the first character decides. */
  readonly format?: 'json' | 'ndjson'
  /** The form of the output: values as `JSON.parse` makes them (the default), or texts character for character. */
  readonly output?: 'values' | 'texts'
  /** Bytes of one object. 10,485,760 by default. */
  readonly objectBytesMax?: number
  /** Objects in all. No bound by default. */
  readonly objectsMax?: number
  /** Levels of arrays and objects in one object. 1,000 by default. */
  readonly nestingMax?: number
}

/** Options for reading ids from the body of a request. */
export interface ParseIdsOptions extends TransformOptions {
  /** Bytes of the body. 33,554,432 by default. */
  readonly bytesMax?: number
}

/** Options for inflating gzip. */
export interface GunzipOptions extends TransformOptions {
  /** Bytes that may come out. 536,870,912 by default. */
  readonly bytesMax?: number
}

const WHAT = 'the stream'
const ARRAY_OPEN = 0x5b
const SPACE: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d])

/**
 * Bytes of a JSON array or of NDJSON in, objects out (object mode). Memory is bounded by the largest object. Emits
 * `StowageError`: `invalid_json` with the line or element, `invalid_object`, `invalid_utf8`, `nesting_too_deep`,
 * `object_too_large`, `too_many_objects`.
 */
export function parseObjects(options: ParseObjectsOptions = {}): Duplex {
  const { format, output = 'values', objectBytesMax, objectsMax, nestingMax, ...modes } = options
  const limits = {
    objectBytesMax: objectBytesMax ?? DEFAULT_LIMITS.objectBytesMax,
    nestingMax: nestingMax ?? DEFAULT_LIMITS.nestingMax,
    objectsMax: objectsMax ?? Infinity,
  }
  return new BatchDuplex<Uint8Array, unknown>((source) => objectsOf(source, { format, output, limits }), {
    ...modes,
    readableObjectMode: true,
    writableObjectMode: false,
  })
}

/**
 * The body of a request that lists ids in (`{"objects": [...]}`, or with the list as a string, as `POST
 * /api/getobjects` takes it), its ids out (object mode), each once. Emits `StowageError`: `invalid_json`,
 * `invalid_request`, `invalid_utf8`, `id_list_too_large`.
 */
export function parseIds(options: ParseIdsOptions = {}): Duplex {
  const { bytesMax = DEFAULT_LIMITS.idListBytesMax, ...modes } = options
  return new BatchDuplex<Uint8Array, string>((source, signal) => idsOf(source, bytesMax, signal), {
    ...modes,
    readableObjectMode: true,
    writableObjectMode: false,
  })
}

/**
 * Gzip in, its content out, and no more than `bytesMax` bytes of it. The event loop turns while a small input becomes a large output. Emits
 * `StowageError`: `invalid_gzip`, `inflated_too_large`.
 */
export function boundedGunzip(options: GunzipOptions = {}): Duplex {
  const { bytesMax = DEFAULT_LIMITS.inflatedBytesMax, ...modes } = options
  return new BatchDuplex<Uint8Array, Uint8Array>((source) => inflated(source, bytesMax), {
    ...modes,
    readableObjectMode: false,
    writableObjectMode: false,
  })
}

interface Parsing {
  readonly format: ParseObjectsOptions['format']
  readonly output: 'values' | 'texts'
  readonly limits: { readonly objectBytesMax: number; readonly nestingMax: number; readonly objectsMax: number }
}

async function* objectsOf(source: AsyncIterable<Uint8Array>, parsing: Parsing): AsyncGenerator<readonly unknown[]> {
  const { format, output } = parsing
  const toOutput = (bytes: Uint8Array, where: string): unknown =>
    output === 'texts' ? textOf(bytes, where) : valueOf(bytes, where)
  const iterator = source[Symbol.asyncIterator]()
  const opening = format === undefined ? await firstCharacter(iterator) : { whole: rest(iterator, []) }
  const isArray = format === 'json' || ('first' in opening && opening.first === ARRAY_OPEN)
  if (isArray) yield* arrayElements(opening.whole, parsing, toOutput)
  else yield* ndjsonLines(opening.whole, parsing, toOutput)
}

type ToOutput = (bytes: Uint8Array, where: string) => unknown

async function* arrayElements(
  chunks: AsyncIterable<Uint8Array>,
  { limits }: Parsing,
  toOutput: ToOutput,
): AsyncGenerator<readonly unknown[]> {
  const splitter = new ElementSplitter({ part: 0, limits, tally: { objects: 0 } })
  const yielder = new Yielder(REAL_ENVIRONMENT)
  for await (const chunk of chunks) {
    yield splitter.push(chunk).map(({ bytes, index }) => toOutput(bytes, `element ${index}`))
    await yielder.due()
  }
  splitter.end()
}

async function* ndjsonLines(
  chunks: AsyncIterable<Uint8Array>,
  { limits }: Parsing,
  toOutput: ToOutput,
): AsyncGenerator<readonly unknown[]> {
  const yielder = new Yielder(REAL_ENVIRONMENT)
  let line = 0
  let objects = 0
  for await (const lines of linesOf(chunks, limits.objectBytesMax)) {
    const found: unknown[] = []
    for (const bytes of lines) {
      line += 1
      const trimmed = withoutSpace(bytes)
      if (trimmed.length === 0) continue
      if (++objects > limits.objectsMax)
        throw new StowageError(
          'too_many_objects',
          `${WHAT} holds more than ${limits.objectsMax} objects (line ${line})`,
        )
      // Splitting one line checks its brackets, and how deep they are.
      found.push(toOutput(oneObject(trimmed, limits, `line ${line}`), `line ${line}`))
    }
    yield found
    await yielder.due()
  }
}

/** Throws unless the text is one JSON object, judged by its brackets. */
function oneObject(text: Uint8Array, limits: Parsing['limits'], where: string): Uint8Array {
  const splitter = new ElementSplitter({ part: 0, limits, tally: { objects: 0 } })
  splitter.push(Uint8Array.of(ARRAY_OPEN))
  const elements = splitter.push(text)
  if (elements.length === 1 && elements[0].bytes.length === text.length) return text
  throw new StowageError('invalid_json', `${where} of ${WHAT} is not one JSON object`)
}

async function* idsOf(
  source: AsyncIterable<Uint8Array>,
  bytesMax: number,
  signal: AbortSignal,
): AsyncGenerator<readonly string[]> {
  const body = {
    contentType: parseContentType('application/json'),
    contentEncoding: undefined,
    contentLength: undefined,
    body: source,
  }
  const ids = await decodeIdList(body, { ...DEFAULT_LIMITS, idListBytesMax: bytesMax }, { signal })
  for (let start = 0; start < ids.size; start += 1_000) {
    const count = Math.min(1_000, ids.size - start)
    yield Array.from({ length: count }, (_, at) => ids.stringAt(start + at))
  }
}

async function* inflated(source: AsyncIterable<Uint8Array>, bytesMax: number): AsyncGenerator<readonly Uint8Array[]> {
  const options = {
    tally: { inflatedBytes: 0 },
    code: 'inflated_too_large',
    bytesMax,
    what: WHAT,
    yielder: new Yielder(REAL_ENVIRONMENT),
  } as const
  // The next piece overwrites the output.
  for await (const bytes of gunzip(source, options)) yield [Buffer.from(bytes)]
}

function textOf(bytes: Uint8Array, where: string): string {
  if (!isUtf8(bytes)) throw new StowageError('invalid_utf8', `${where} of ${WHAT} is not UTF-8`)
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}

function valueOf(bytes: Uint8Array, where: string): unknown {
  const text = textOf(bytes, where)
  try {
    return JSON.parse(text) as unknown
  } catch (cause) {
    // The engine's message is omitted: it shows parts of the text.
    const fault = jsonFault(bytes)
    const what = fault === undefined ? 'is not JSON' : `is not JSON: ${fault.rule} (byte ${fault.at})`
    throw new StowageError('invalid_json', `${where} of ${WHAT} ${what}`, { cause })
  }
}

function withoutSpace(bytes: Uint8Array): Uint8Array {
  let start = 0
  let end = bytes.length
  while (start < end && SPACE.has(bytes[start])) start++
  while (end > start && SPACE.has(bytes[end - 1])) end--
  return bytes.subarray(start, end)
}

/** The first character that is not white space, and everything from the start on. */
async function firstCharacter(
  iterator: AsyncIterator<Uint8Array>,
): Promise<{ readonly first: number | undefined; readonly whole: AsyncIterable<Uint8Array> }> {
  const seen: Uint8Array[] = []
  for (let step = await iterator.next(); step.done !== true; step = await iterator.next()) {
    seen.push(Uint8Array.from(step.value))
    const first = step.value.find((byte) => !SPACE.has(byte))
    if (first !== undefined) return { first, whole: rest(iterator, seen) }
    // White space decides nothing, and need not be kept.
    seen.length = 0
  }
  return { first: undefined, whole: rest(iterator, []) }
}

async function* rest(iterator: AsyncIterator<Uint8Array>, seen: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* seen
  for (let step = await iterator.next(); step.done !== true; step = await iterator.next()) yield step.value
}
