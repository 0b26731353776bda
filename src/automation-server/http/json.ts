import { isUtf8 } from 'node:buffer'
import { StowageError } from '../../errors.ts'
import type { Answer, Exchange, PathParams } from '../../http/exchange.ts'
import { tooLarge } from '../../limits.ts'
import { checkProjectId, quoted } from '../../object/id.ts'
import { jsonFault } from '../../object/json-fault.ts'
import { firstBrokenByte } from '../../object/utf8.ts'
import { checkResourceId } from '../domain/checks.ts'
import type { Reader } from '../shape.ts'
import type { PageRequest } from '../types.ts'

const JSON_TYPE = /^\s*application\/json\s*(?:;|$)/i

/** The body as JSON of a known shape. Throws `unsupported_media_type`, `request_too_large`, `invalid_utf8`, `invalid_json` and what `reader` throws. */
export async function readJson<T>(
  { body }: Pick<Exchange<unknown>, 'body'>,
  bytesMax: number,
  reader: Reader<T>,
): Promise<T> {
  return reader(await jsonOf(body, bytesMax), '')
}

async function jsonOf(body: Exchange<unknown>['body'], bytesMax: number): Promise<unknown> {
  const { type, encoding, length = 0 } = body
  if (type !== undefined && !JSON_TYPE.test(type))
    throw new StowageError('unsupported_media_type', `the body's type is ${quoted(type)}; it must be application/json`)
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
    throw new StowageError(
      'unsupported_media_type',
      `the body's Content-Encoding is ${quoted(encoding)}; here it must have none`,
    )
  if (length > bytesMax) throw tooLarge('request_too_large', `the request's body (${length} bytes)`, bytesMax)
  const pieces: Uint8Array[] = []
  let bytes = 0
  for await (const piece of body.values()) {
    bytes += piece.length
    if (bytes > bytesMax) throw tooLarge('request_too_large', "the request's body", bytesMax)
    pieces.push(piece)
  }
  return parseJson(Buffer.concat(pieces))
}

function parseJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new StowageError('invalid_utf8', `the body is not UTF-8 (byte ${firstBrokenByte(bytes)})`)
  if (bytes.length === 0) return {}
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch (cause) {
    // What the engine says is left out: it shows parts of the text, and not always where they stand.
    const fault = jsonFault(bytes)
    const where =
      fault === undefined ? '' : `: ${fault.rule} (line ${fault.line}, column ${fault.column}, byte ${fault.at})`
    throw new StowageError('invalid_json', `the body is not JSON${where}`, { cause })
  }
}

export function jsonAnswer(status: 200 | 201, value: unknown, headers: Readonly<Record<string, string>> = {}): Answer {
  return {
    status,
    headers: { 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'private, no-store', ...headers },
    body: Buffer.from(JSON.stringify(value)),
  }
}

/** `limit` and `cursor`, and such others as the path takes; throws `invalid_request` for any that are not known, or come twice. */
export function readQuery<const N extends string>(
  { query }: Pick<Exchange<unknown>, 'query'>,
  ...names: readonly N[]
): PageRequest & { readonly [K in N]?: string } {
  const known: readonly string[] = ['limit', 'cursor', ...names]
  const read: Record<string, string | number> = {}
  for (const [name, value] of query) {
    if (!known.includes(name) || Object.hasOwn(read, name))
      throw new StowageError(
        'invalid_request',
        `the parameter ${quoted(name)} is given twice or not known here; known are ${known.join(', ')}`,
      )
    read[name] = name === 'limit' ? (/^\d{1,6}$/.test(value) ? Number(value) : Number.NaN) : value
  }
  return read as PageRequest & { readonly [K in N]?: string }
}

/** Throws `invalid_id` for parameters that cannot be what they stand for. */
export function checkParams({ projectId, ...others }: PathParams): void {
  checkProjectId(projectId)
  for (const [name, id] of Object.entries(others)) if (name !== 'functionId') checkResourceId(id, name.slice(0, -2))
}
