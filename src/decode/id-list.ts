import { isUtf8 } from 'node:buffer'
import { REAL_ENVIRONMENT } from '../environment.ts'
import { StowageError } from '../errors.ts'
import type { Limits } from '../limits.ts'
import type { MemoryLease } from '../memory/memory-lease.ts'
import { IdSet } from '../object/id-set.ts'
import type { AttributeMask } from '../object/wire-types.ts'
import type { Schema } from '../openapi/description/types.ts'
import { ATTRIBUTE_MASK, MASK_NAMES_MAX, OBJECT_STREAM_REQUEST } from '../openapi/objects/shapes.ts'
import { Yielder } from '../async/yielder.ts'
import { formValue } from './form.ts'
import { readIdBody } from './id-body.ts'
import { type MemberValue, readMembers } from './object-members.ts'
import { readStringArray, skipSpace } from './string-array.ts'
import { unescapeInPlace } from './unescape.ts'
import type { DecodeOptions } from './decode-upload.ts'
import type { UploadSource } from './wire.ts'

const BODY = 'the body'
const OBJECTS = 'objects'
const QUOTE = 0x22
/** Looked through in one go, before the event loop may turn. */
const STRETCH_BYTES = 1_048_576
const MASK_BYTES_MAX = 131_072
/** A name as a string, in the worst case, and once more as bytes. */
const MASK_MEMORY_BYTES: number = 3 * MASK_BYTES_MAX

/** The members of an object-stream request, and those of its mask. */
const STREAM_MEMBERS: readonly string[] = [
  ...memberNames(OBJECT_STREAM_REQUEST.definition),
  ...memberNames(ATTRIBUTE_MASK.definition).map((name) => `attributeMask.${name}`),
]

export interface ObjectStreamSelection {
  readonly ids: IdSet
  readonly mask?: AttributeMask
}

/** The state that the stages of reading a list share. */
interface Reading {
  readonly yielder: Yielder
  readonly memory: MemoryLease | undefined
}

/**
 * The ids of a diff or list request, each once, in their first order. The body is `{"objects": "<a JSON array of ids,
 * as a string>"}`, the same with a plain array (other members are ignored), or the form `objects=[...]`; gzip in
 * Content-Encoding is undone. The set may contain texts that can never be an object's id (empty, over 512 bytes, with
 * control characters): such ids are simply not held. Throws `unsupported_media_type`, `id_list_too_large`,
 * `invalid_gzip`, `invalid_utf8`, `invalid_json`, `nesting_too_deep`, `request_aborted`, `invalid_id` for a lone
 * surrogate, and `invalid_request` if the list is missing or is not a list of strings.
 */
export async function decodeIdList(source: UploadSource, limits: Limits, options: DecodeOptions): Promise<IdSet> {
  const yielder = new Yielder(options.environment ?? REAL_ENVIRONMENT)
  const reading = { yielder, memory: options.memory }
  const body = await readIdBody(source, limits, { signal: options.signal, formAccepted: true, ...reading })
  if (body.type === 'form')
    return readIdText(await unescapeInPlace(formValue(body.bytes, OBJECTS), 'form', yielder), reading)
  const members = await readMembers(body.bytes, {
    names: [OBJECTS],
    strict: false,
    nestingMax: limits.nestingMax,
    what: BODY,
    yielder,
  })
  const objects = members.get(OBJECTS)
  if (objects?.kind === 'string') return readIdText(await unescapeInPlace(objects.bytes, 'json', yielder), reading)
  if (objects?.kind === 'array') return (await readIds(objects.bytes, OBJECTS, reading)).ids
  throw new StowageError(
    'invalid_request',
    `${BODY} must have the member "objects": a JSON array of ids, or a string that holds one`,
  )
}

/**
 * The body of an object-stream request, read strictly: `{"objectIds": [...], "attributeMask"?: {"include": [...]} |
 * {"exclude": [...]}}` with at least one id and at most 1,000 names in the mask. Ids and errors as in `decodeIdList`.
 */
export async function decodeObjectStreamRequest(
  source: UploadSource,
  limits: Limits,
  options: DecodeOptions,
): Promise<ObjectStreamSelection> {
  const yielder = new Yielder(options.environment ?? REAL_ENVIRONMENT)
  const reading = { yielder, memory: options.memory }
  const body = await readIdBody(source, limits, { signal: options.signal, formAccepted: false, ...reading })
  const members = await readMembers(body.bytes, {
    names: STREAM_MEMBERS,
    strict: true,
    nestingMax: limits.nestingMax,
    what: BODY,
    yielder,
  })
  const objectIds = members.get('objectIds')
  if (objectIds?.kind !== 'array') {
    throw new StowageError('invalid_request', `${BODY} must have the member "objectIds": a JSON array of ids`)
  }
  const mask = await readMask(members, reading)
  const { ids } = await readIds(objectIds.bytes, 'objectIds', reading)
  if (ids.size === 0) throw new StowageError('invalid_request', 'objectIds is empty; it must hold at least one id')
  return mask === undefined ? { ids } : { ids, mask }
}

/** A whole text that is an array of ids and nothing more. */
async function readIdText(text: Uint8Array, reading: Reading): Promise<IdSet> {
  if (!isUtf8(text)) throw new StowageError('invalid_utf8', 'objects is not UTF-8')
  const { ids, end } = await readIds(text, OBJECTS, reading)
  if (skipSpace(text, end) < text.length)
    throw new StowageError('invalid_json', `objects continues after its array (byte ${end})`)
  return ids
}

/**
 * The ids stay in the buffer of the text: they are moved together in it, so a list of them costs no more than its text
 * and the tables of a set.
 */
async function readIds(
  text: Uint8Array,
  what: string,
  { yielder, memory }: Reading,
): Promise<{ readonly ids: IdSet; readonly end: number }> {
  const count = await countStrings(text, yielder)
  // One byte for each will hold whether it is held.
  await memory?.hold(IdSet.tablesBytes(count) + count, 'id_list_too_large')
  const ids = new IdSet(count, text)
  const end = await readStringArray(text, (bytes, start, stop) => void ids.add(bytes, start, stop), { what, yielder })
  return { ids, end }
}

/** At least as many as there are: half of the quotes. */
async function countStrings(text: Uint8Array, yielder: Yielder): Promise<number> {
  let quotes = 0
  for (let start = 0; start < text.length; start += STRETCH_BYTES) {
    const end = Math.min(text.length, start + STRETCH_BYTES)
    for (let at = start; at < end; at++) if (text[at] === QUOTE) quotes++
    await yielder.due()
  }
  return quotes >> 1
}

async function readMask(
  members: ReadonlyMap<string, MemberValue>,
  { yielder, memory }: Reading,
): Promise<AttributeMask | undefined> {
  const mask = members.get('attributeMask')
  if (mask === undefined) return undefined
  if (mask.kind !== 'object') throw new StowageError('invalid_request', 'attributeMask must be an object')
  await memory?.hold(MASK_MEMORY_BYTES, 'id_list_too_large')
  const given: Record<string, readonly string[]> = {}
  for (const [path, value] of members) {
    const [parent, name] = path.split('.')
    if (parent === 'attributeMask' && name !== undefined) given[name] = await readNames(value, path, yielder)
  }
  return ATTRIBUTE_MASK.read(given, 'attributeMask')
}

async function readNames(value: MemberValue, what: string, yielder: Yielder): Promise<readonly string[]> {
  const names: string[] = []
  let namesBytes = 0
  const add = (bytes: Uint8Array, start: number, end: number): void => {
    if (names.length === MASK_NAMES_MAX)
      throw new StowageError('invalid_request', `${what} has more than ${MASK_NAMES_MAX} names`)
    namesBytes += end - start
    if (namesBytes > MASK_BYTES_MAX)
      throw new StowageError('invalid_request', `the names of ${what} have more than ${MASK_BYTES_MAX} bytes together`)
    names.push(Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('utf8'))
  }
  await readStringArray(value.kind === 'string' ? new Uint8Array(0) : value.bytes, add, { what, yielder })
  return names
}

function memberNames({ properties = {}, oneOf = [] }: Schema): readonly string[] {
  return [...Object.keys(properties), ...oneOf.flatMap(memberNames)]
}
