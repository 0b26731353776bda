import { isUtf8 } from 'node:buffer'
import { StowageError } from '../errors.ts'
import type { Limits } from '../limits.ts'
import { IdSet } from '../object/id-set.ts'
import type { AttributeMask } from '../object/mask.ts'
import { Breather } from './breather.ts'
import { formValue } from './form.ts'
import { readIdBody } from './id-body.ts'
import { type MemberValue, readMembers } from './object-members.ts'
import { readStringArray, skipSpace } from './string-array.ts'
import { unescapeInPlace } from './unescape.ts'
import type { DecodeOptions } from './upload.ts'
import type { UploadSource } from './wire.ts'

const BODY = 'the body'
const OBJECTS = 'objects'
/** A guess at the bytes of one id with its quotes and comma, so that the set rarely grows. */
const BYTES_PER_ID = 35
const MASK_NAMES_MAX = 1_000

export interface ObjectStreamRequest {
  readonly ids: IdSet
  readonly mask?: AttributeMask
}

/**
 * The ids that a diff or a list request asks for, each once, in their first order. The body is `{"objects": "<a JSON array of ids, as a
 * string>"}`, the same with a plain array (other members are ignored), or the form `objects=[...]`; gzip in Content-Encoding is undone.
 *
 * The set may hold what can never be an object's id (empty, over 512 bytes, with control characters): such ids are simply not held. Throws
 * `unsupported_media_type`, `id_list_too_large`, `invalid_gzip`, `invalid_utf8`, `invalid_json`, `nesting_too_deep`, `request_aborted`,
 * `invalid_id` for a lone surrogate, and `invalid_request` where the list is missing or not one of strings.
 */
export async function decodeIdList(source: UploadSource, limits: Limits, options: DecodeOptions): Promise<IdSet> {
  const breather = new Breather()
  const body = await readIdBody(source, limits, { signal: options.signal, breather, formAccepted: true })
  if (body.type === 'form')
    return readIdText(await unescapeInPlace(formValue(body.bytes, OBJECTS), 'form', breather), breather)
  const members = await readMembers(body.bytes, {
    names: [OBJECTS],
    strict: false,
    nestingMax: limits.nestingMax,
    what: BODY,
    breather,
  })
  const objects = members.get(OBJECTS)
  if (objects?.kind === 'string') return readIdText(await unescapeInPlace(objects.bytes, 'json', breather), breather)
  if (objects?.kind === 'array') return (await readIds(objects.bytes, OBJECTS, breather)).ids
  throw new StowageError(
    'invalid_request',
    `${BODY} must have the member "objects": a JSON array of ids, or a string that holds one`,
  )
}

/**
 * The body of an object-stream request, read strictly: `{"objectIds": [...], "attributeMask"?: {"include": [...]} | {"exclude": [...]}}`
 * with at least one id and at most 1,000 names in the mask. Ids and errors as in `decodeIdList`.
 */
export async function decodeObjectStreamRequest(
  source: UploadSource,
  limits: Limits,
  options: DecodeOptions,
): Promise<ObjectStreamRequest> {
  const breather = new Breather()
  const body = await readIdBody(source, limits, { signal: options.signal, breather, formAccepted: false })
  const names = ['objectIds', 'attributeMask', 'attributeMask.include', 'attributeMask.exclude']
  const members = await readMembers(body.bytes, {
    names,
    strict: true,
    nestingMax: limits.nestingMax,
    what: BODY,
    breather,
  })
  const objectIds = members.get('objectIds')
  if (objectIds?.kind !== 'array') {
    throw new StowageError('invalid_request', `${BODY} must have the member "objectIds": a JSON array of ids`)
  }
  const mask = await readMask(members, breather)
  const { ids } = await readIds(objectIds.bytes, 'objectIds', breather)
  if (ids.size === 0) throw new StowageError('invalid_request', 'objectIds is empty; it must hold at least one id')
  return mask === undefined ? { ids } : { ids, mask }
}

/** A whole text that is an array of ids and nothing more. */
async function readIdText(text: Uint8Array, breather: Breather): Promise<IdSet> {
  if (!isUtf8(text)) throw new StowageError('invalid_utf8', 'objects is not UTF-8')
  const { ids, end } = await readIds(text, OBJECTS, breather)
  if (skipSpace(text, end) < text.length)
    throw new StowageError('invalid_json', `objects goes on behind its array (byte ${end})`)
  return ids
}

async function readIds(
  text: Uint8Array,
  what: string,
  breather: Breather,
): Promise<{ readonly ids: IdSet; readonly end: number }> {
  const ids = new IdSet(Math.ceil(text.length / BYTES_PER_ID))
  const end = await readStringArray(text, (bytes, start, stop) => void ids.add(bytes, start, stop), { what, breather })
  return { ids, end }
}

async function readMask(
  members: ReadonlyMap<string, MemberValue>,
  breather: Breather,
): Promise<AttributeMask | undefined> {
  const mask = members.get('attributeMask')
  if (mask === undefined) return undefined
  const include = members.get('attributeMask.include')
  const exclude = members.get('attributeMask.exclude')
  if (mask.kind !== 'object' || (include === undefined) === (exclude === undefined)) {
    throw new StowageError(
      'invalid_request',
      'attributeMask must be an object with either "include" or "exclude", each an array of names',
    )
  }
  if (include !== undefined) return { include: await readNames(include, 'attributeMask.include', breather) }
  return { exclude: await readNames(exclude as MemberValue, 'attributeMask.exclude', breather) }
}

async function readNames(value: MemberValue, what: string, breather: Breather): Promise<readonly string[]> {
  const names: string[] = []
  const add = (bytes: Uint8Array, start: number, end: number): void => {
    if (names.length === MASK_NAMES_MAX)
      throw new StowageError('invalid_request', `${what} has more than ${MASK_NAMES_MAX} names`)
    names.push(Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('utf8'))
  }
  await readStringArray(value.kind === 'string' ? new Uint8Array(0) : value.bytes, add, { what, breather })
  return names
}
