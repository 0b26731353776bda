import { StowageError } from '../errors.ts'

const AMPERSAND = 0x26
const EQUALS = 0x3d

/**
 * The value of one field of an application/x-www-form-urlencoded body, still encoded: a view of `body`. Other fields
 * are ignored. Throws `invalid_request` if it is missing or repeated. `name` must be one that no client has to encode.
 */
export function formValue(body: Uint8Array, name: string): Uint8Array {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  let value: Uint8Array | undefined
  for (let start = 0; start < bytes.length;) {
    const ampersand = bytes.indexOf(AMPERSAND, start)
    const end = ampersand < 0 ? bytes.length : ampersand
    if (bytes[start + name.length] === EQUALS && bytes.toString('latin1', start, start + name.length) === name) {
      if (value !== undefined) throw new StowageError('invalid_request', `the form has the field ${name} twice`)
      value = body.subarray(start + name.length + 1, end)
    }
    start = end + 1
  }
  if (value === undefined)
    throw new StowageError('invalid_request', `the form must have the field ${name}: a JSON array of ids`)
  return value
}
