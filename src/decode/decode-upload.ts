import { DELTA_MEDIA_TYPE } from '../delta/delta.ts'
import { REAL_ENVIRONMENT, type Environment } from '../environment.ts'
import { StowageError } from '../errors.ts'
import type { Limits } from '../limits.ts'
import type { MemoryLease } from '../memory/memory-lease.ts'
import type { Element } from '../object/element.ts'
import { quoted } from '../object/id.ts'
import { Yielder } from '../async/yielder.ts'
import { type PromisedFormat, isGzip, isGzipEncoded, promisedFormat } from './content-format.ts'
import { GUNZIP_BYTES, type InflateCounter, gunzip } from './gunzip.ts'
import { fileParts } from './multipart.ts'
import { sniff } from './sniff.ts'
import { ElementSplitter, type ObjectCounter } from './splitter.ts'
import { type UploadSource, readWire } from './wire.ts'

const GZIP_MAGIC_BYTES = 2

export interface DecodeOptions {
  readonly signal: AbortSignal
  /** The lease for held memory. Without it nothing is counted. */
  readonly memory?: MemoryLease
  /** That of the process by default. */
  readonly environment?: Environment | undefined
}

/** The state that all parts of one request share. */
interface Request {
  readonly limits: Limits
  readonly yielder: Yielder
  readonly tally: InflateCounter & ObjectCounter
  readonly memory: MemoryLease | undefined
  readonly environment: Environment
}

/**
 * The elements of an upload, in the order in which they came, in batches of what about 256 KB held. A body of application/json, plain or
 * with Content-Encoding gzip, of application/gzip, or of multipart/form-data with files of these; or of the media type of deltas, where elements that
 * are arrays are yielded as they are. Nothing may be kept before the iteration has ended well: an error can stand behind the last element.
 *
 * Throws what its stages throw: `unsupported_media_type`, `request_too_large`, `request_aborted`, `invalid_multipart`, `too_many_parts`,
 * `part_header_too_large`, `invalid_gzip`, `inflated_too_large`, `invalid_json`, `invalid_object`, `nesting_too_deep`, `object_too_large`,
 * `too_many_objects`, and `invalid_request` where content and headers disagree. Returning early returns the body's iterator.
 */
export async function* decodeUpload(
  source: UploadSource,
  limits: Limits,
  options: DecodeOptions,
): AsyncGenerator<readonly Element[]> {
  const environment = options.environment ?? REAL_ENVIRONMENT
  const request: Request = {
    limits,
    yielder: new Yielder(environment),
    tally: { inflatedBytes: 0, objects: 0 },
    memory: options.memory,
    environment,
  }
  const read = acceptedReader(source, request)
  const body = readWire(source, {
    code: 'request_too_large',
    bytesMax: limits.requestBytesMax,
    signal: options.signal,
    yielder: request.yielder,
  })
  yield* read(body)
}

type Reader = (body: AsyncIterable<Uint8Array>) => AsyncIterable<readonly Element[]>

/** Chosen from the headers alone, so that a refusal comes before anything is read. */
function acceptedReader(source: UploadSource, request: Request): Reader {
  const { mediaType, parameters, text } = source.contentType
  if (mediaType === 'multipart/form-data' && !isGzipEncoded(source.contentEncoding, 'the body')) {
    return (body) => readParts(body, parameters.get('boundary'), request)
  }
  if (isDeltaUpload(source)) {
    const promised = isGzipEncoded(source.contentEncoding, 'the body') ? 'gzip' : 'json'
    return (body) => readContent(body, { part: 0, what: 'the body', promised, takesArrays: true }, request)
  }
  if (mediaType === 'application/json' || mediaType === 'application/gzip') {
    const promised = promisedFormat(source, 'the body')
    return (body) => readContent(body, { part: 0, what: 'the body', promised }, request)
  }
  const found = `${quoted(text)}${source.contentEncoding === undefined ? '' : ` with Content-Encoding ${quoted(source.contentEncoding)}`}`
  throw new StowageError(
    'unsupported_media_type',
    `the body is ${found}; an upload must be multipart/form-data, application/gzip, or application/json (plain or with Content-Encoding gzip)`,
  )
}

async function* readParts(
  body: AsyncIterable<Uint8Array>,
  boundary: string | undefined,
  request: Request,
): AsyncGenerator<readonly Element[]> {
  for await (const part of fileParts(body, { boundary, limits: request.limits, environment: request.environment })) {
    const what = `part ${part.index} (${quoted(part.name)})`
    yield* readContent(part.bytes, { part: part.index, what, promised: promisedFormat(part, what) }, request)
  }
}

/** The source of a content, and its headers. */
interface Origin {
  readonly part: number
  readonly what: string
  readonly promised: PromisedFormat
  readonly takesArrays?: boolean
}

/** Whether elements may be deltas. */
export function isDeltaUpload({ contentType }: Pick<UploadSource, 'contentType'>): boolean {
  return contentType.mediaType === DELTA_MEDIA_TYPE
}

async function* readContent(
  bytes: AsyncIterable<Uint8Array>,
  origin: Origin,
  request: Request,
): AsyncGenerator<readonly Element[]> {
  const { limits, tally, yielder, memory } = request
  const content = await sniff(bytes, GZIP_MAGIC_BYTES)
  try {
    const gzip = isGzip(content.opening, origin.promised, origin.what)
    const inflate = {
      tally,
      code: 'inflated_too_large',
      bytesMax: limits.inflatedBytesMax,
      what: origin.what,
      yielder,
      bufferPool: memory?.bufferPool,
    } as const
    const splitter = new ElementSplitter({ part: origin.part, limits, tally, takesArrays: origin.takesArrays })
    const part = memory?.part()
    const inflaterBytes = gzip ? GUNZIP_BYTES : 0
    await part?.set(inflaterBytes)
    for await (const text of gzip ? gunzip(content.whole, inflate) : content.whole) {
      await part?.set(inflaterBytes + splitter.memoryBytesWith(text.length))
      for (let elements = splitter.push(text); ; elements = splitter.more()) {
        // Memory of complete elements now counts with the following stages.
        await part?.set(inflaterBytes + splitter.memoryBytesWith(0))
        if (elements.length > 0) yield elements
        await yielder.due()
        if (!splitter.hasMore) break
      }
    }
    await part?.set(0)
    splitter.end()
  } finally {
    await content.close()
  }
}
