import { StowageError } from '../errors.ts'

/**
 * The replacement character that decoders insert for invalid UTF-8. In a decoded text it is unknown whether the client
 * sent it.
 */
const REPLACEMENT = '\uFFFD'

/** The value that a parser of the host left of a body that it has read. */
export interface ParsedBody {
  /**
   * The exact bytes, from parsers that keep them (`express.raw()`, `express.text()`, `rawBody` of Koa's and others).
   */
  readonly bytes: Uint8Array | undefined
  /** The type that describes `values`. */
  readonly type: string | undefined
  readonly values: unknown
}

/**
 * Parsers inflate and decode; their results have lost the `Content-Encoding`, and objects have lost the type as well.
 */
export function parsedBody(left: unknown, type: string | undefined): ParsedBody {
  if (typeof left === 'string' && !left.includes(REPLACEMENT))
    return { bytes: Buffer.from(left), type, values: undefined }
  if (left instanceof Uint8Array) return { bytes: left, type, values: undefined }
  const usable = typeof left === 'object' && left !== null && !isMultipart(type)
  return { bytes: undefined, type: usable ? 'application/json' : type, values: usable ? left : undefined }
}

/** The exact bytes. Parsed JSON does not do: it has lost the spelling of numbers and the digits of large ones. */
export async function* exactBytes(parsed: ParsedBody): AsyncGenerator<Uint8Array> {
  if (parsed.bytes === undefined) throw bodyConsumed()
  yield parsed.bytes
}

export async function* parsedValues(parsed: ParsedBody): AsyncGenerator<Uint8Array> {
  if (parsed.bytes !== undefined) yield parsed.bytes
  else if (parsed.values === undefined) throw bodyConsumed()
  else yield Buffer.from(JSON.stringify(parsed.values))
}

export function bodyConsumed(): StowageError {
  return new StowageError(
    'body_consumed',
    'a body parser of the host read this request before Stowage could; mount Stowage before the parser',
  )
}

function isMultipart(type: string | undefined): boolean {
  return type !== undefined && /^\s*multipart\//i.test(type)
}
