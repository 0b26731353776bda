import { BLOCKS_MEDIA_TYPE } from '../../blocks/ready-blocks.ts'
import { REQUEST_ID_PARAMETER, schemaRef } from '../description/shared.ts'
import type { Content, Header, Headers, Parameter, Reference, Schema } from '../description/types.ts'
import { DOOR_ID, PROJECT_ID, ROOT_ID } from './examples.ts'
import { NO_CONTROL_CHARACTERS } from './schemas.ts'

/** Parameters and headers that several endpoints share, and the responses that any of them can give. */

/** A root that a client has, with the digest of the objects that it received below it. */
const ROOT_WITH_DIGEST: Schema = {
  type: 'string',
  maxLength: 641,
  'x-maxBytes': 641,
  pattern: `${NO_CONTROL_CHARACTERS.slice(0, -'+$'.length)}{1,512}@[0-9a-f]{16,128}$`,
  description: '`<id>@<digest>`.',
}

export const TAG = 'Objects'

export const PARAMETERS: Readonly<Record<string, Parameter>> = {
  ProjectId: {
    name: 'projectId',
    in: 'path',
    required: true,
    description: 'The project.',
    schema: { type: 'string', ...schemaRef('ProjectId') },
    examples: { demo: { value: PROJECT_ID } },
  },
  ObjectId: {
    name: 'objectId',
    in: 'path',
    required: true,
    description: 'The object.',
    schema: { type: 'string', ...schemaRef('ObjectId') },
    examples: { root: { value: ROOT_ID } },
  },
  AcceptEncoding: {
    name: 'Accept-Encoding',
    in: 'header',
    description:
      'The codings are gzip and identity (RFC 9110 section 12.5.3). Stored objects are compressed already, so gzip costs nothing for lines.',
    schema: { type: 'string' },
    examples: { gzip: { value: 'gzip' }, identity: { value: 'identity' } },
  },
  ContentEncoding: {
    name: 'Content-Encoding',
    in: 'header',
    description: 'gzip around a body of JSON. Bodies of the other types contain compressed data already.',
    schema: { type: 'string', enum: ['gzip', 'x-gzip', 'identity'] },
  },
  Strict: {
    name: 'strict',
    in: 'query',
    description:
      'With it, missing objects cause a 409 that names them. Without it they are omitted and counted in `Stowage-Missing-Objects`. Its value does not matter.',
    allowEmptyValue: true,
    schema: { type: 'string' },
    examples: { strict: { value: '' } },
  },
  Have: {
    name: 'have',
    in: 'query',
    description:
      'A root that the client has with everything below it; those objects are omitted. `<id>`, or `<id>@<digest>` with the `Stowage-Closure` of the download that brought it, which also works if that download was incomplete. Up to 100 times.',
    style: 'form',
    explode: true,
    schema: { type: 'array', maxItems: 100, items: { anyOf: [schemaRef('ObjectId'), ROOT_WITH_DIGEST] } },
    examples: { door: { value: [DOOR_ID] } },
  },
  Delta: {
    name: 'delta',
    in: 'query',
    description:
      'With it, and with `have`, objects may come as deltas on objects that the client has: as `<id> TAB <delta>`, where a delta is an array as in `DeltaBatch`. Only in lines; a JSON array never holds any. Such an answer has neither `Content-Length` nor `ETag`. Its value does not matter.',
    allowEmptyValue: true,
    schema: { type: 'string' },
    examples: { delta: { value: '' } },
  },
  Archive: {
    name: 'archive',
    in: 'query',
    description:
      'The gzip of the lines as a file, `application/gzip`, regardless of `Accept` and `Accept-Encoding`. Browsers can resume it.',
    schema: { type: 'string', enum: ['gzip'] },
    examples: { gzip: { value: 'gzip' } },
  },
  Range: {
    name: 'Range',
    in: 'header',
    description:
      'One range of bytes of the answer as it is sent (RFC 9110 section 14.2), for downloads that broke off. Other units, several ranges and bad syntax mean the whole.',
    schema: { type: 'string' },
    examples: { start: { value: 'bytes=0-99' } },
  },
  IfRange: {
    name: 'If-Range',
    in: 'header',
    description: 'The strong entity tag that the range is of; any other answers the whole (RFC 9110 section 13.1.5).',
    schema: { type: 'string' },
    examples: { other: { value: '"0123456789abcdef-text-gzip"' } },
  },
  Heartbeats: {
    name: 'X-Speckle-Object-Stream-Heartbeats',
    in: 'header',
    description: '`true` asks for a line `:heartbeat` whenever nothing else was sent for five seconds.',
    schema: { type: 'string' },
    examples: { true: { value: 'true' } },
  },
}

export function parameter(name: string): Reference {
  return { $ref: `#/components/parameters/${name}` }
}

/** Parameters of a path, which all its operations have. */
export function pathParameters(...names: readonly string[]): readonly Reference[] {
  return names.map(parameter)
}

export function parameters(...names: readonly string[]): readonly Reference[] {
  return [...names.map(parameter), REQUEST_ID_PARAMETER]
}

export const HEADERS: Readonly<Record<string, Header>> = {
  'Stowage-Objects': {
    description: 'How many objects the whole answer has.',
    required: true,
    schema: { type: 'string', pattern: '^\\d+$' },
  },
  'Stowage-Missing-Objects': {
    description: 'The number of objects that belong in the response but are not held.',
    required: true,
    schema: { type: 'string', pattern: '^\\d+$' },
  },
  'Stowage-Closure': {
    description: 'Names the set of all held objects at and below the root: the digest for `have=<id>@<digest>`.',
    schema: { type: 'string', pattern: '^[0-9a-f]{16,128}$' },
  },
  'Stowage-Have': {
    description:
      'What became of each `have`: `<percent-encoded id>;subtracted`, `;unknown`, `;incomplete` or `;digest-mismatch`.',
    schema: {
      type: 'string',
      pattern:
        '^[^;, ]+;(subtracted|unknown|incomplete|digest-mismatch)(, [^;, ]+;(subtracted|unknown|incomplete|digest-mismatch))*$',
    },
  },
  'Accept-Post': {
    description: 'The media type of ready blocks, from servers that take uploads of them.',
    schema: { type: 'string', const: BLOCKS_MEDIA_TYPE },
  },
  'Accept-Ranges': { description: 'That `Range` works on this answer.', schema: { type: 'string', const: 'bytes' } },
  'Content-Range': {
    description: 'Which bytes these are, of how many (RFC 9110 section 14.4).',
    required: true,
    schema: { type: 'string', pattern: '^bytes (\\d+-\\d+|\\*)/\\d+$' },
  },
  'Content-Encoding': { description: 'gzip, or absent.', schema: { type: 'string', const: 'gzip' } },
  'Content-Disposition': {
    description: 'With `archive`: the name of the file.',
    schema: { type: 'string', pattern: '^attachment; filename="[\\w.-]+"$' },
  },
}

/** A header of an area or of all, for headers that all responses of one kind have. */
export function required(name: string, header: Header): Headers {
  return { [name]: { ...header, required: true } }
}

/** The two spellings of a list of ids. */
export function idListContent(ids: readonly string[], unknown: string): Content {
  const some = [...ids, unknown]
  return {
    'application/json': {
      schema: schemaRef('ObjectIdList'),
      examples: {
        string: { summary: 'A string that holds a JSON array', value: { objects: JSON.stringify(some) } },
        array: { summary: 'A plain array', value: { objects: some } },
      },
    },
    'application/x-www-form-urlencoded': {
      schema: schemaRef('ObjectIdForm'),
      examples: { form: { value: { objects: JSON.stringify(some) } } },
    },
  }
}
