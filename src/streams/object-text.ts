import { StowageError } from '../errors.ts'

/**
 * An object as an upload stream takes it in object mode: its JSON text, a record with that text, or a value to make
 * JSON of.
 */
export type ObjectChunk = string | Uint8Array | { readonly id: string; readonly json: string | Uint8Array } | object

/** The JSON text of an object, as UTF-8. Throws `invalid_object` for a value that has none. */
export function textOf(chunk: unknown): Uint8Array {
  if (typeof chunk === 'string') return Buffer.from(chunk)
  if (chunk instanceof Uint8Array) return chunk
  if (typeof chunk === 'object' && chunk !== null) {
    const { json } = chunk as { readonly json?: unknown }
    if (json instanceof Uint8Array) return json
    if (typeof json === 'string' && isTextRecord(chunk)) return Buffer.from(json)
    return Buffer.from(stringified(chunk))
  }
  throw new StowageError(
    'invalid_object',
    `an object to upload must be an object or its JSON text, not a ${typeof chunk}`,
  )
}

/** The client's texts: an id, its text, and nothing else. */
function isTextRecord(chunk: object): boolean {
  return typeof (chunk as { readonly id?: unknown }).id === 'string' && Object.keys(chunk).length === 2
}

function stringified(value: object): string {
  const text = jsonOf(value)
  if (text !== undefined && text.startsWith('{')) return text
  throw new StowageError('invalid_object', 'an object to upload must become a JSON object')
}

/** `undefined` if `toJSON` returns a value that JSON lacks. */
function jsonOf(value: object): string | undefined {
  try {
    return JSON.stringify(value)
  } catch (cause) {
    throw new StowageError('invalid_object', 'an object to upload has no JSON text', { cause })
  }
}
