import { isUtf8 } from 'node:buffer'
import { StowageError } from '../../errors.ts'
import type { Exchange } from '../../http/exchange.ts'
import { wholeBody } from '../../http/whole-body.ts'
import { quoted } from '../../object/id.ts'

/** The entries of a submitted form; the last value of a repeated name. */
export type FormEntries = ReadonlyMap<string, string>

const BODY_BYTES_MAX = 1_048_576
const ENTRIES_MAX = 1_000
/** The memory of entries per byte of the form. */
const ENTRY_BYTES_PER_BYTE = 4
const FORM_TYPE = /^\s*application\/x-www-form-urlencoded\s*(?:;|$)/i
/** The type of a form that a parser of the host has already read. */
const PARSED_TYPE = /^\s*application\/json\s*(?:;|$)/i

/** Reads a form. Throws `unsupported_media_type`, `request_too_large`, `invalid_utf8` and `invalid_request`. */
export async function readForm(exchange: Pick<Exchange<unknown>, 'body' | 'memory'>): Promise<FormEntries> {
  const { type = '', encoding } = exchange.body
  const isParsed = PARSED_TYPE.test(type)
  if (!isParsed && !FORM_TYPE.test(type))
    throw new StowageError(
      'unsupported_media_type',
      `the body's type is ${quoted(type)}; it must be application/x-www-form-urlencoded`,
    )
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
    throw new StowageError(
      'unsupported_media_type',
      `the body's Content-Encoding is ${quoted(encoding)}; here it must have none`,
    )
  const bytes = await wholeBody(exchange, { bytesMax: BODY_BYTES_MAX, what: 'the form' })
  await exchange.memory.hold(bytes.length * ENTRY_BYTES_PER_BYTE, 'request_too_large')
  if (!isUtf8(bytes)) throw new StowageError('invalid_utf8', 'the form is not UTF-8')
  const text = bytes.toString('utf8')
  const entries = isParsed ? parsedEntries(text) : [...new URLSearchParams(text)]
  if (entries.length > ENTRIES_MAX)
    throw new StowageError('invalid_request', `the form has ${entries.length} entries; the limit is ${ENTRIES_MAX}`)
  return new Map(entries)
}

function parsedEntries(text: string): [string, string][] {
  const parsed = parsedJson(text)
  if (typeof parsed !== 'object' || parsed === null)
    throw new StowageError('invalid_request', 'the form must be an object of texts')
  return Object.entries(parsed).flatMap(([name, value]: [string, unknown]) => {
    const last: unknown = Array.isArray(value) ? value.at(-1) : value
    return typeof last === 'string' ? [[name, last] satisfies [string, string]] : []
  })
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new StowageError('invalid_json', 'the body is not JSON', { cause })
  }
}
