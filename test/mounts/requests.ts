import { crc32, gzipSync } from 'node:zlib'
import { DELTA_MEDIA_TYPE } from '../../src/delta/delta.ts'
import { filePart, multipartUpload } from '../contract/sides.ts'
import type { Sent } from './ask.ts'

export const LIMITS = { requestBytesMax: 200_000, objectBytesMax: 100_000 }

const JSON_TYPE = { 'content-type': 'application/json' }

export const HOSTILE_IDS: readonly string[] = [
  'a/b',
  '%2F',
  '%252F',
  '%ff',
  'single',
  '..',
  '.',
  '../../etc/passwd',
  'C:\\x',
  '__proto__',
  'constructor',
  'a b+c',
  'q?x=1#y',
  '"\\',
  'ü€😀',
  'x'.repeat(121),
  'x'.repeat(512),
  '€'.repeat(170),
  '/'.repeat(512),
  ' ',
  '|;,',
  ':id',
  '*',
  ';a=b',
  'objects',
  'root',
]

export const HELD: readonly { readonly id: string; readonly [member: string]: unknown }[] = [
  ...HOSTILE_IDS.filter((id) => id !== 'root').map((id, n) => ({ id, n })),
  ...Array.from({ length: 40 }, (_, n) => ({ id: `child${n}`, text: `${n}, `.repeat(400) })),
  {
    id: 'root',
    children: Array.from({ length: 40 }, (_, n) => ({ referencedId: `child${n}` })),
    unheld: { referencedId: 'nobody' },
  },
]

const multipart = multipartUpload([
  filePart('[{"id":"m1"}]', 'application/json'),
  filePart(gzipSync('[{"id":"m2"},{"n":1}]'), 'application/gzip'),
])

const DELTA_TYPE = { 'content-type': DELTA_MEDIA_TYPE }

/** What makes `{"id":"<id>","n":1.50}` of the object `a`. */
function delta(id: string): string {
  return JSON.stringify([['a', crc32(`{"id":"${id}","n":1.50}`), 0, 7, id, 1, 11, '']])
}

function upload(
  project: string,
  body: Uint8Array | string,
  headers: Readonly<Record<string, string>> = JSON_TYPE,
): Sent {
  return { method: 'POST', path: `/objects/${project}`, headers, body }
}

/** Each kind of upload, to be sent in this order into a project that is empty before. */
export function uploads(project: string): readonly Sent[] {
  return [
    upload(project, '[{"id":"a","n":1.50},{"id":"b"}]'),
    upload(project, '[{"id":"a","n":1.5}]'),
    upload(project, gzipSync('[{"id":"c"}]'), { 'content-type': 'application/gzip' }),
    upload(project, gzipSync('[{"id":"d"}]'), { ...JSON_TYPE, 'content-encoding': 'gzip' }),
    upload(project, '[{"id":"e"}]', { ...JSON_TYPE, 'transfer-encoding': 'chunked' }),
    upload(project, delta('j'), DELTA_TYPE),
    upload(project, gzipSync(delta('k')), { ...DELTA_TYPE, 'content-encoding': 'gzip' }),
    upload(project, delta('l').replace('"l"', '"m"'), DELTA_TYPE),
    upload(project, delta('l').replace('"a"', '"nobody"'), DELTA_TYPE),
    upload(project, delta('l')),
    upload(project, '[{"id":"f"}]', { 'content-type': 'text/plain; charset=utf-8' }),
    upload(project, '[{"id":"g"}]', { 'content-type': 'application/octet-stream' }),
    upload(project, '[{"id":"h"}]', { 'content-type': '' }),
    upload(project, '[{"id":"i"}]', {}),
    upload(project, multipart.body, { 'content-type': 'multipart/form-data; boundary=a-boundary-of-tests' }),
    upload(project, multipart.body.subarray(0, 100), {
      'content-type': 'multipart/form-data; boundary=a-boundary-of-tests',
    }),
    upload(project, multipart.body, { 'content-type': 'multipart/form-data' }),
    upload(project, '[]'),
    upload(project, ''),
    upload(project, '[{"id":"z"},]'),
    upload(project, '[{"id":"\u0000"}]'),
    upload(project, Buffer.from('[{"id":"z","text":"\xff"}]', 'latin1')),
    upload(project, gzipSync('[{"id":"z"}]').subarray(0, 20), { 'content-type': 'application/gzip' }),
    upload(project, '[{"id":"z"}]', { 'content-type': 'text/html' }),
    upload(project, '[{"id":"z"}]', { 'content-type': 'no media type' }),
    upload(project, '[{"id":"z"}]', { 'content-type': 'application/json; charset=utf-16' }),
    upload(project, '[{"id":"z"}]', { ...JSON_TYPE, 'content-encoding': 'br' }),
    upload(project, JSON.stringify([{ id: 'z', text: 'x'.repeat(LIMITS.objectBytesMax) }])),
    upload(project, ' '.repeat(LIMITS.requestBytesMax + 1)),
    upload(project, ' '.repeat(LIMITS.requestBytesMax + 1), { ...JSON_TYPE, 'transfer-encoding': 'chunked' }),
    upload(project, ' '.repeat(2 * LIMITS.requestBytesMax), { 'content-type': 'application/gzip' }),
    {
      method: 'POST',
      path: `/api/diff/${project}`,
      headers: JSON_TYPE,
      body: JSON.stringify({
        objects: JSON.stringify(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'z', 'm1', 'm2']),
      }),
    },
  ]
}

function list(path: string, body: string, headers: Readonly<Record<string, string>> = {}): Sent {
  return { method: 'POST', path, headers: { ...JSON_TYPE, ...headers }, body }
}

const IDS = JSON.stringify({ objects: JSON.stringify([...HOSTILE_IDS, 'nobody', '']) })
const STREAM = JSON.stringify({ objectIds: ['child1', 'root', 'nobody'], attributeMask: { include: ['children'] } })
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

/** Reads of a project that holds `HELD`. */
export function reads(project: string): readonly Sent[] {
  const objects = `/objects/${project}`
  const root = `${objects}/root`
  const answered: readonly Sent[] = [
    list(`/api/diff/${project}`, IDS),
    list(`/api/diff/${project}`, '{"objects":["root"]}'),
    list(`/api/diff/${project}`, '{"objects":7}'),
    list(`/api/diff/${project}`, ''),
    list(`/api/diff/${project}`, `objects=${encodeURIComponent('["root","nobody"]')}`, FORM),
    list(`/api/getobjects/${project}`, IDS, { accept: 'application/json' }),
    list(`/api/getobjects/${project}`, IDS, { accept: 'text/plain', 'accept-encoding': 'gzip' }),
    list(`/api/getobjects/${project}`, IDS, { accept: 'image/png' }),
    ...['', '/'].map((slash) => list(`/api/v2/projects/${project}/object-stream${slash}`, STREAM)),
    list(`/api/v2/projects/${project}/object-stream`, '{"objectIds":[]}'),
    ...['application/json', 'text/plain', '*/*;q=0.1'].flatMap((accept) =>
      ['identity', 'gzip'].map((coding): Sent => ({ path: root, headers: { accept, 'accept-encoding': coding } })),
    ),
    { path: root, headers: { accept: 'text/plain', 'accept-encoding': 'gzip', range: 'bytes=100-199' } },
    { path: root, headers: { accept: 'text/plain', 'accept-encoding': 'gzip', range: 'bytes=-5' } },
    { path: root, headers: { 'accept-encoding': 'gzip', range: 'bytes=99999999-' } },
    { path: root, headers: { 'if-none-match': '*' } },
    { path: root, headers: { 'if-match': '"another"' } },
    { path: `${root}?archive=gzip`, headers: { range: 'bytes=0-9' } },
    { path: `${root}?archive=zip` },
    { path: `${root}?strict` },
    { path: `${root}?have=child1&have=%ff` },
    { path: `${root}?have=child1&delta`, headers: { accept: 'text/plain' } },
    { path: `${objects}/child3/single`, headers: { 'accept-encoding': 'gzip' } },
    { path: `${objects}/child3/single`, headers: { 'accept-encoding': 'identity;q=0, br' } },
    ...['/nobody', '/nobody/single', '/root?have=%00'].map((path) => ({ path: `${objects}${path}` })),
    { path: '/objects/unknown/root' },
  ]
  return answered
}

/** Hostile ids in paths, and paths that are no ids. */
export function hostilePaths(project: string): readonly Sent[] {
  const ids = [
    ...HOSTILE_IDS.map((id) => encodeURIComponent(id)),
    '%2e%2e',
    'x'.repeat(513),
    '%',
    '%f',
    '%zz',
    '%ff',
    '%E0%A4',
    '%00',
    '%C2%85',
    '%ff%2F%25',
    "a'b",
    'a;b',
    'a%3Bb',
    '@',
    '!$&()*+,=',
  ]
  return ids.flatMap((id) => ['?x=%ff&%', '/single'].map((rest) => ({ path: `/objects/${project}/${id}${rest}` })))
}

const METHODS = ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'PATCH', 'POST']

/** Every method on every path. */
export function methods(project: string): readonly Sent[] {
  const paths = ['/objects/root', '/objects/root/single'].map((path) => path.replace('/root', `/${project}/root`))
  const all = [
    ...paths,
    `/objects/${project}`,
    `/api/diff/${project}`,
    `/api/getobjects/${project}`,
    `/api/v2/projects/${project}/object-stream`,
    `/objects/${project}/%ff`,
  ]
  return all.flatMap((path) => METHODS.map((method) => ({ method, path })))
}
