import type { Readable, Writable } from 'node:stream'
import { parseContentType } from '../decode/header-value.ts'
import type { UploadSource } from '../decode/wire.ts'
import type { ObjectRecord } from '../object/line.ts'
import type { UploadSummary } from '../object/wire-types.ts'
import type { CallOptions } from '../storage/backend.ts'
import { BatchReadable } from '../streams/batch-readable.ts'
import { UploadWritable } from '../streams/upload-stream.ts'

/** Ids of objects, at once or as they come. */
export type ObjectIds = Iterable<string> | AsyncIterable<string>

/** Options for reading a graph. */
export interface GraphCallOptions extends CallOptions {
  /** Roots as `<id>` or `<id>@<closure digest>` whose objects are left out. */
  readonly have?: readonly string[]
}

/** The format of objects as bytes. */
export interface ByteEncoding {
  /** `text`: lines `<id> TAB <json> LF`. `json`: one array. */
  readonly format: 'text' | 'json'
  /** Whether the bytes are compressed. */
  readonly coding: 'gzip' | 'identity'
}

/** Options for streaming objects out. */
export interface ObjectStreamOptions extends Partial<ByteEncoding> {
  /** `ObjectRecord`s instead of bytes; `format` and `coding` then mean nothing. */
  readonly objectMode?: boolean
  /**
   * Bytes that are made ahead of the reader; in object mode, objects. One piece of the core's, of about 256 KB, may go
   * over it.
   */
  readonly highWaterMark?: number
  /** Destroys the stream with an `AbortError`. */
  readonly signal?: AbortSignal
}

/** Options for streaming a graph out. */
export interface GraphStreamOptions extends ObjectStreamOptions, Pick<GraphCallOptions, 'have'> {}

/** Options for streaming objects in. */
export interface UploadStreamOptions {
  /** Takes objects instead of bytes: JSON texts, `ObjectRecord`s, or values to make JSON of. */
  readonly objectMode?: boolean
  /**
   * The type of the bytes, as the endpoint takes it: `application/json` (the default), `application/gzip`,
   * `multipart/form-data; boundary=...`.
   */
  readonly contentType?: string
  /** `gzip` for a body of JSON that is compressed. */
  readonly contentEncoding?: string
  /**
   * The number of bytes to come, if it is known: the quota of the project is asked for room before they are read, as for
   * a request with `Content-Length`.
   */
  readonly contentLength?: number
  /** Bytes that are taken ahead of the store; in object mode, objects. */
  readonly highWaterMark?: number
  /** Destroys the stream with an `AbortError`. */
  readonly signal?: AbortSignal
}

/**
 * An upload under way. `finish` is emitted when everything is durable. A stream that is destroyed before leaves nothing
 * behind.
 */
export interface UploadStream extends Writable {
  /** The summary of the upload, from `finish` on. */
  readonly summary: UploadSummary | undefined
}

/**
 * Objects of a project as Node streams. What fails destroys the stream, with a `StowageError` as HTTP would answer it.
 */
export interface ProjectStreams {
  /** Accepts the contents of one upload. All or nothing. */
  createUploadStream(options?: UploadStreamOptions): UploadStream
  /** The root and everything below it, the root first. Emits `not_found` when the root is not held. */
  createGraphStream(root: string, options?: GraphStreamOptions): Readable
  /** The objects of a list that are held, each once. */
  createObjectsStream(ids: ObjectIds, options?: ObjectStreamOptions): Readable
}

/** The parts that streams are made of. */
export interface StreamSources {
  readonly upload: (source: UploadSource, options: CallOptions) => Promise<UploadSummary>
  readonly graph: (root: string, options: GraphCallOptions) => AsyncIterable<readonly ObjectRecord[]>
  readonly objects: (ids: ObjectIds, options: CallOptions) => AsyncIterable<readonly ObjectRecord[]>
  readonly graphBytes: (root: string, encoding: ByteEncoding, options: GraphCallOptions) => AsyncIterable<Uint8Array>
  readonly objectsBytes: (ids: ObjectIds, encoding: ByteEncoding, options: CallOptions) => AsyncIterable<Uint8Array>
}

export function projectStreams(sources: StreamSources): ProjectStreams {
  return {
    createUploadStream: ({ contentType, contentEncoding, contentLength, objectMode = false, ...options } = {}) => {
      checkLength(contentLength)
      return new UploadWritable<UploadSummary>(
        (body, signal) =>
          sources.upload(
            {
              contentType: parseContentType(objectMode ? JSON_TYPE : (contentType ?? JSON_TYPE)),
              contentEncoding: objectMode ? undefined : contentEncoding,
              contentLength,
              body,
            },
            { signal },
          ),
        { ...options, objectMode },
      )
    },
    createGraphStream: (root, { have = [], ...options } = {}) =>
      objectStream(options, {
        records: (signal) => sources.graph(root, { signal, have }),
        bytes: (encoding, signal) => sources.graphBytes(root, encoding, { signal, have }),
      }),
    createObjectsStream: (ids, options = {}) =>
      objectStream(options, {
        records: (signal) => sources.objects(ids, { signal }),
        bytes: (encoding, signal) => sources.objectsBytes(ids, encoding, { signal }),
      }),
  }
}

const JSON_TYPE = 'application/json'

function checkLength(contentLength: number | undefined): void {
  if (contentLength === undefined || (Number.isSafeInteger(contentLength) && contentLength >= 0)) return
  throw new RangeError(`contentLength is ${contentLength}; it must be an integer of 0 or more`)
}

function objectStream(
  { objectMode = false, format = 'text', coding = 'identity', ...options }: ObjectStreamOptions,
  make: {
    readonly records: (signal: AbortSignal) => AsyncIterable<readonly ObjectRecord[]>
    readonly bytes: (encoding: ByteEncoding, signal: AbortSignal) => AsyncIterable<Uint8Array>
  },
): Readable {
  return objectMode
    ? new BatchReadable(make.records, { ...options, objectMode })
    : new BatchReadable((signal) => inOnes(make.bytes({ format, coding }, signal)), { ...options, objectMode })
}

async function* inOnes(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<readonly Uint8Array[]> {
  for await (const piece of pieces) yield [piece]
}
