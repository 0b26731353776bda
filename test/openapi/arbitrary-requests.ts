import { gzipSync } from 'node:zlib'
import * as fc from 'fast-check'
import type { Parameter, Schema } from '../../src/openapi/description/types.ts'
import type { Sent } from '../mounts/ask.ts'
import { IDS, jsonTexts, valuesOf } from './arbitrary-values.ts'
import type { Conformance, Found } from './conformance.ts'
import { encoded, parametersOf, withParameter } from './requests.ts'

const PROJECTS: readonly string[] = ['demo', 'demo', 'demo', 'empty', '__proto__', 'x'.repeat(128)]
const RAW_SEGMENTS: readonly string[] = [
  '%',
  '%f',
  '%ff',
  '%00',
  '%0a',
  '%e2%80%a8',
  '%ed%a0%80',
  '..',
  '.',
  '%2e%2e',
  '%2F',
  '~',
  '*',
  ';',
  '%7f',
  'a%20b',
  'x'.repeat(513),
  '%F0%9F%98%80',
  '+',
  '=',
  '&',
  '@',
  ':',
]
const METHODS: readonly string[] = ['GET', 'HEAD', 'POST', 'OPTIONS', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND']
const HEADER_VALUES: Readonly<Record<string, readonly string[]>> = {
  accept: [
    '*/*',
    'text/plain',
    'application/json;q=0',
    'text/*;q=0.1, application/json;q=0.2',
    'image/png',
    ',',
    ';',
    'text/plain;q=NaN',
    'a/b/c',
    '*/*;q=0',
    'text/plain; charset=utf-16',
    ', '.repeat(2_000),
    `text/plain;${'x=y;'.repeat(500)}`,
  ],
  'accept-encoding': [
    'gzip',
    'identity',
    '*',
    '*;q=0',
    'identity;q=0',
    'br',
    'gzip;q=0, *;q=0',
    'gzip;q=2',
    ',,,',
    'gzip;q=0.0001',
    `${'x,'.repeat(2_000)}gzip`,
  ],
  range: [
    'bytes=0-',
    'bytes=-1',
    'bytes=-0',
    'bytes=5-4',
    'bytes=0-0,2-3',
    'bytes=99999999999999999999-',
    'bytes=0-99999999999999999999',
    'bytes=a-b',
    'items=0-1',
    '=',
    'bytes=',
    'bytes=1000000-',
    `bytes=${'0-1,'.repeat(1_000)}`,
  ],
  'if-range': ['"x"', 'W/"x"', 'Sat, 21 Nov 2026 09:00:00 GMT', '', '"'],
  'if-match': ['*', '"x"', 'W/"x"', '', '"', ',', '"a","b"'.repeat(300)],
  'if-none-match': ['*', '"x"', 'W/"x"', '', '"', ',', '"a","b"'.repeat(300)],
  'content-type': [
    'application/json',
    'application/gzip',
    'multipart/form-data',
    'multipart/form-data; boundary=',
    'multipart/form-data; boundary="a b"',
    'multipart/form-data; boundary=x',
    'text/html',
    '',
    '/',
    ';',
    'application/json; charset=utf-16',
    'application/json;;;',
    'application/x-www-form-urlencoded',
    `application/json; x="${'y'.repeat(5_000)}"`,
  ],
  'content-encoding': ['gzip', 'identity', 'br', 'gzip, gzip', '', 'x-gzip', 'GZIP'],
  authorization: ['Bearer', 'Bearer ', 'Basic eDp5', 'Bearer a.b.c', 'x'.repeat(5_000)],
  'x-request-id': ['', 'ok', '<script>', 'x'.repeat(200), 'é'],
  'x-speckle-object-stream-heartbeats': ['true', 'false', ''],
  origin: ['null', 'https://viewer.example', '*', ''],
  'access-control-request-method': ['GET', 'x', ''],
  'access-control-request-headers': ['authorization', '*', 'x'.repeat(2_000)],
  'x-http-method-override': ['DELETE'],
  'idempotency-key': ['', 'again', 'x'.repeat(300)],
  'last-event-id': ['', '0.0', '1.0', '999999999999999.9999999999', '-1.0', '1', '1.1.1'],
  te: ['trailers'],
  'transfer-encoding': ['chunked'],
}
const QUERIES: readonly string[] = [
  'strict',
  'strict=0',
  'archive=gzip',
  'archive=zip',
  'archive',
  'have=child0',
  'have=',
  'have=%00',
  'have=%ff',
  'have=unknown',
  'have=root@0123456789abcdef',
  'have=@',
  `have=${'x'.repeat(513)}`,
  'have=a&'.repeat(101),
  '%',
  '&&&',
  '=',
  '__proto__=1',
  '?',
  'x[]=1',
  'limit=0',
  'limit=1',
  'limit=1001',
  'limit=1e3',
  'limit=',
  'limit=1&limit=2',
  'cursor=',
  'cursor=0',
  'cursor=ffffffffffffffffffffffffffffffff',
  'cursor=0.0',
  'cursor=..',
  'cursor=-',
  'cursor=fffffff.ffffffff',
  'status=running',
  'status=',
  'level=ERROR',
  'level=error',
  'objectId=',
  `category=${'x'.repeat(5_000)}`,
  'automationId=x',
  'name=',
  'name=%00',
  'name=a&name=b',
  `name=${'x'.repeat(300)}`,
  'name=..%2F..%2Fetc',
]

/** Requests that follow the document in everything. */
export function validRequests(conformance: Conformance): fc.Arbitrary<Sent> {
  return fc.oneof(...conformance.operations().map((found) => validRequestsOf(conformance, found)))
}

/** Requests that begin as valid ones and go wrong in some places. */
export function hostileRequests(conformance: Conformance): fc.Arbitrary<Sent> {
  return fc
    .tuple(validRequests(conformance), fc.array(change(), { minLength: 1, maxLength: 4 }))
    .map(([sent, changes]) => changes.reduce((changed, one) => one(changed), sent))
}

function validRequestsOf(conformance: Conformance, found: Found): fc.Arbitrary<Sent> {
  const parameters = parametersOf(conformance, found)
  const optional = parameters
    .filter((one) => one.in !== 'path')
    .map((one) => {
      const values =
        one.in === 'header'
          ? fc.constantFrom(
              ...Object.values(one.examples ?? { none: { value: 'identity' } }).map(({ value }) => String(value)),
            )
          : valuesOf(conformance, one.schema)
      return fc
        .option(values, { freq: one.required === true ? 20 : 3, nil: undefined })
        .map((value) => ({ one, value }))
    })
  const content = Object.entries(found.operation.requestBody?.content ?? {})
  const bodies = content.map(([type, { schema, examples }]) => {
    const values =
      schema?.contentMediaType === type
        ? fc.constantFrom(...Object.values(examples ?? {}).map(({ value }) => value))
        : valuesOf(conformance, schema ?? {})
    return values.map((value) => encoded(type, value))
  })
  const places = parameters
    .filter((one) => one.in === 'path')
    .map(({ name, schema }) => pathValues(conformance, name, schema).map((value) => [name, value] as const))
  return fc
    .tuple(fc.tuple(...places), fc.tuple(...optional), bodies.length === 0 ? fc.constant({}) : fc.oneof(...bodies))
    .map(([values, chosen, body]) => {
      const path = values.reduce(
        (whole, [name, value]) => whole.replace(`{${name}}`, () => encodeURIComponent(value)),
        found.template,
      )
      const bare: Sent = { method: found.method.toUpperCase(), path, ...body }
      return chosen
        .filter(({ value, one }) => value !== undefined && !(one.name === 'Content-Encoding'))
        .reduce((sent, { one, value }) => withParameter(sent, one, value), bare)
    })
}

function pathValues(conformance: Conformance, name: string, schema: Schema): fc.Arbitrary<string> {
  if (name === 'projectId') return fc.constantFrom(...PROJECTS)
  if (name === 'objectId') return fc.constantFrom('root', 'root', 'child0', 'incomplete', ...IDS)
  const made =
    conformance.resolve<Parameter>({ $ref: `#/components/parameters/${name[0].toUpperCase()}${name.slice(1)}` })
      .examples ?? {}
  return fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom(...Object.values(made).map(({ value }) => String(value))) },
    { weight: 1, arbitrary: valuesOf(conformance, schema) as fc.Arbitrary<string> },
  )
}

type Change = (sent: Sent) => Sent

function change(): fc.Arbitrary<Change> {
  return fc.oneof(
    fc
      .tuple(
        fc.nat(6),
        fc.oneof(fc.constantFrom(...RAW_SEGMENTS), fc.string({ maxLength: 12 }).map(encodeURIComponent)),
      )
      .map(([at, raw]) => withSegment(at, raw)),
    fc.oneof(fc.constantFrom(...QUERIES), fc.webQueryParameters()).map((query): Change => (sent) => ({
      ...sent,
      path: `${sent.path}${sent.path.includes('?') ? '&' : '?'}${query}`,
    })),
    fc.constantFrom(...METHODS).map((method): Change => (sent) => ({ ...sent, method })),
    fc.constantFrom(...Object.keys(HEADER_VALUES)).chain((name) =>
      fc.oneof(fc.constantFrom(...HEADER_VALUES[name]), headerTexts(name)).map((value): Change => (sent) => ({
        ...sent,
        headers: { ...sent.headers, [name]: value },
      })),
    ),
    bodyChange(),
  )
}

/**
 * What decides about the framing of a request is not left to chance: a request that is itself broken is another test.
 */
function headerTexts(name: string): fc.Arbitrary<string> {
  return name === 'transfer-encoding'
    ? fc.constant('chunked')
    : fc.string({ maxLength: 30 }).map((value) => value.replaceAll(/[^\x20-\x7e]/g, '').trim())
}

function withSegment(at: number, raw: string): Change {
  return (sent) => {
    const [path, ...query] = sent.path.split('?')
    const segments = path.split('/')
    segments[1 + (at % (segments.length - 1))] = raw
    return { ...sent, path: [segments.join('/'), ...query].join('?') }
  }
}

function bodyChange(): fc.Arbitrary<Change> {
  const onBytes =
    (make: (bytes: Buffer) => Buffer): Change =>
    (sent) => ({ ...sent, body: make(Buffer.from(sent.body ?? '')) })
  return fc.oneof(
    fc
      .double({ min: 0, max: 1, noNaN: true })
      .map((share) => onBytes((bytes) => bytes.subarray(0, Math.floor(bytes.length * share)))),
    fc.tuple(fc.nat(100_000), fc.integer({ min: 1, max: 255 })).map(([at, flip]) =>
      onBytes((bytes) => {
        const copy = Buffer.from(bytes)
        if (copy.length > 0) copy[at % copy.length] ^= flip
        return copy
      }),
    ),
    fc.constant(onBytes((bytes) => gzipSync(bytes))),
    fc.constant(onBytes((bytes) => Buffer.concat([bytes, bytes]))),
    fc.constant(onBytes((bytes) => Buffer.concat([bytes, Buffer.alloc(250_000, 0x20)]))),
    fc.constant(onBytes(() => gzipSync(Buffer.alloc(5_000_000)))),
    jsonTexts.map((json) => onBytes(() => Buffer.from(json))),
    fc.uint8Array({ maxLength: 300 }).map((bytes) => onBytes(() => Buffer.from(bytes))),
  )
}
