import { isUtf8 } from 'node:buffer'
import { StowageError } from '../../errors.ts'
import type { Answer, Exchange, PathParams } from '../../http/exchange.ts'
import { wholeBody } from '../../http/whole-body.ts'
import { checkProjectId, quoted } from '../../object/id.ts'
import { jsonFault } from '../../inspect/json-fault.ts'
import { firstBrokenByte } from '../../object/utf8.ts'
import { checkResourceId } from '../schemas/checks.ts'
import type { Shape } from '../../openapi/description/shape.ts'
import type { PageRequest } from '../schemas/types.ts'

/** The memory of values per byte of their text. */
const VALUE_BYTES_PER_BYTE = 4
const JSON_TYPE = /^\s*application\/json\s*(?:;|$)/i

/**
 * The body as JSON of a known shape. Throws `unsupported_media_type`, `request_too_large`, `invalid_utf8`,
 * `invalid_json` and the errors of `shape`.
 */
export async function readJson<T>(
  exchange: Pick<Exchange<unknown>, 'body' | 'memory'>,
  bytesMax: number,
  shape: Shape<T>,
): Promise<T> {
  const json = await jsonOf(exchange, bytesMax)
  if (json === undefined) throw new StowageError('invalid_json', 'the request has no body; it must be JSON')
  return shape.read(json, '')
}

/** The same for requests whose body is optional; a missing one is read as `{}`. */
export async function readOptionalJson<T>(
  exchange: Pick<Exchange<unknown>, 'body' | 'memory'>,
  bytesMax: number,
  shape: Shape<T>,
): Promise<T> {
  const json = await jsonOf(exchange, bytesMax)
  return shape.read(json === undefined ? {} : json, '')
}

/** `undefined` without a body. */
async function jsonOf(exchange: Pick<Exchange<unknown>, 'body' | 'memory'>, bytesMax: number): Promise<unknown> {
  const { type, encoding } = exchange.body
  if (type !== undefined && !JSON_TYPE.test(type))
    throw new StowageError('unsupported_media_type', `the body's type is ${quoted(type)}; it must be application/json`)
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
    throw new StowageError(
      'unsupported_media_type',
      `the body's Content-Encoding is ${quoted(encoding)}; here it must have none`,
    )
  const bytes = await wholeBody(exchange, { bytesMax, what: "the request's body" })
  await exchange.memory.hold(bytes.length * VALUE_BYTES_PER_BYTE, 'request_too_large')
  return parseJson(bytes)
}

function parseJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new StowageError('invalid_utf8', `the body is not UTF-8 (byte ${firstBrokenByte(bytes)})`)
  if (bytes.length === 0) return undefined
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch (cause) {
    // The engine's message is omitted: it shows parts of the text, and not always their position.
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
        `the parameter ${quoted(name)} is repeated or unknown; known are ${known.join(', ')}`,
      )
    read[name] = name === 'limit' ? (/^\d{1,6}$/.test(value) ? Number(value) : Number.NaN) : value
  }
  return read as PageRequest & { readonly [K in N]?: string }
}

/** A parameter that is `true` or `false`; absent means `false`. Throws `invalid_request`. */
export function readFlag(name: string, value: string | undefined): boolean {
  if (value === undefined || value === 'false') return false
  if (value === 'true') return true
  throw new StowageError('invalid_request', `${name} is ${quoted(value)}; it must be true or false`)
}

/** Throws `invalid_id` for invalid parameters. */
export function checkParams({ projectId, ...others }: PathParams): void {
  checkProjectId(projectId)
  for (const [name, id] of Object.entries(others)) if (name !== 'functionId') checkResourceId(id, name.slice(0, -2))
}
