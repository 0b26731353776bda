import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { levelBackend } from '../../adapters/level/index.ts'
import { jsonUpload, type Served, served } from '../http/served.ts'
import { servedFromFolder } from './hosts.ts'

const MB = 1_048_576

const PATHS = [
  '../x',
  '../../x',
  '..',
  '.',
  '...',
  '/',
  '//',
  '\\',
  '..\\x',
  '..\\..\\x',
  '/etc/passwd',
  '/tmp/x',
  '~',
  '~root',
  './x',
  'x/',
  'x/.',
  'x/..',
  'a/b/c',
  '%2e%2e%2f',
  '%2F',
  '%252F',
  '%5c',
  '%00',
  '%',
  '%zz',
  '..;/',
  '..%c0%af',
  'x%0d%0a',
  'file:///x',
]
const WINDOWS = [
  'C:',
  'C:\\x',
  'C:/x',
  'c:x',
  '\\\\host\\share',
  '\\\\?\\C:\\x',
  '//./COM1',
  'CON',
  'con',
  'NUL',
  'nul.txt',
  'AUX',
  'PRN',
  'COM1',
  'LPT9',
  'x:stream',
  'x::$DATA',
  'x.',
  'x ',
  ' x',
  'x. ',
  'X',
  'x',
  '<x>',
  'x|y',
  'x?y',
  'x*y',
  '"x"',
]
const NAMES = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  'valueOf',
  'null',
  'undefined',
  'true',
  'NaN',
  '0',
  '-0',
  '1e400',
  '-1',
  'id',
  'single',
  'objects',
  'api',
  'diff',
  'object-stream',
  'LOCK',
  'CURRENT',
  'MANIFEST-000001',
  'stowage.json',
  'stowage.lock',
  'packs',
  'incoming',
  'records',
  '.git',
  '.htaccess',
  'index.html',
  'o',
  'k',
  'h\u0020p',
]
const TEXTS = [
  "' OR 1=1 --",
  '"; DROP TABLE x',
  '<script>',
  '${x}',
  '{{x}}',
  '`x`',
  '$(x)',
  '|x',
  '&',
  '&&x',
  ';',
  '#',
  '?',
  '?x=1',
  '#x',
  '@',
  'a@0123456789abcdef',
  '+',
  ' ',
  '  ',
  ',',
  '=',
  '!',
  '*',
  '[',
  '{}',
  '"',
  '\\"',
  '\\u0041',
  'a\\',
  ':heartbeat',
  '--',
  '-x',
  '%s%n',
  '\u00a0',
  '\u200b',
  '\ufeff',
  '\u202e',
  '\uffff',
  '\ufffd',
]
const UNICODE = [
  'é',
  'e\u0301',
  'É',
  'ß',
  'ẞ',
  'SS',
  'ss',
  'İ',
  'i',
  'ı',
  'I',
  '\ufb01',
  'fi',
  '\u00c5',
  '\u212b',
  '\u03a9',
  '\u2126',
  '\uac00',
  '\u1100\u1161',
  '😀',
  '👩\u200d👩\u200d👧',
  '𝒳',
  '\u{10ffff}',
  '漢',
  'א',
  '\uff41',
  '①',
  '²',
  '\u2044',
  '\uff0f',
  '\u2025',
  '\u3002',
  '\ufe68',
]
const DEEP = Array.from({ length: 12 }, (_, n) => `${'../'.repeat(n + 1)}etc/passwd`)
const LONG = [
  'x'.repeat(255),
  'x'.repeat(256),
  'x'.repeat(511),
  'x'.repeat(512),
  'é'.repeat(256),
  '😀'.repeat(128),
  '../'.repeat(170),
  '%'.repeat(512),
]
/** As JSON spells them; none of these can be an id. */
const REFUSED = [
  '',
  '\\u0000',
  'a\\u0000b',
  '\\u0001',
  '\\n',
  '\\r\\n',
  '\\t',
  'a\\tb',
  '\\u001b[31m',
  '\\u001f',
  '\\u007f',
  '\\u0080',
  '\\u0085',
  '\\u009f',
  '\\u2028',
  '\\u2029',
  '\\ud800',
  '\\udfff',
  'a\\ud83d',
  '\\ude00\\ud83d',
  '\\udc00x',
  'x'.repeat(513),
  'é'.repeat(257),
  '../'.repeat(171),
  'x'.repeat(MB),
  '\\u0000'.repeat(64),
  `${'x'.repeat(512)}\\u0000`,
]

const STORED = [...new Set([...PATHS, ...WINDOWS, ...NAMES, ...TEXTS, ...UNICODE, ...DEEP, ...LONG])]

/** Makes a pack too large for a record, so that the project gets files of its own. */
const NOT_INLINE = randomBytes(60_000).toString('base64')
/** Some levels down, so that what climbs out of it is seen. */
const DATA = 'a/b/c/d/e/f/data'

/** A path that is sent as it is, which `fetch` does not do. */
async function get(port: number, path: string): Promise<readonly [number | undefined, string]> {
  const [answer] = (await once(request({ port, host: '127.0.0.1', path }).end(), 'response')) as [IncomingMessage]
  return [answer.statusCode, await text(answer)]
}

function listed(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
}

/** Only what the storage names by itself: never a part of an id. */
const OWN_FILES =
  /^(?:stowage\.json|incoming|(?:records|blobs)(?:\/(?:lengths|CURRENT|LOCK|LOG|LOG\.old|MANIFEST-\d+|\d+\.(?:log|ldb|dbtmp)))?|packs(?:\/[0-9a-f]{64}(?:\/[0-9a-f]{32}\.blob)?)?)$/

for (const [name, backendAt] of [
  ['files', filesystemBackend],
  ['level', levelBackend],
] as const) {
  test(`case 13: ${STORED.length} hostile ids are stored safely and apart, and nothing is written outside the data folder, over ${name}`, async (t) => {
    assert.ok(STORED.length + REFUSED.length >= 200)
    const host = await servedFromFolder(t, { below: DATA, backendAt: (path) => backendAt({ path }) })
    const { url, port, service, folder } = host
    const objects = STORED.map((id, n) => ({
      id,
      n,
      to: { referencedId: STORED[(n + 1) % STORED.length] },
      pad: 'x'.repeat(400),
    }))
    assert.deepEqual(await (await fetch(`${url}/objects/p`, jsonUpload(objects))).json(), {
      objects: STORED.length,
      created: STORED.length,
      differing: 0,
      rewritten: 0,
      assigned: [],
      assignedCount: 0,
    })
    for (const [n, id] of STORED.entries()) {
      assert.deepEqual(
        await get(port, `/objects/p/${encodeURIComponent(id)}/single`),
        [200, JSON.stringify(objects[n])],
        id,
      )
    }
    const graph = JSON.parse((await get(port, `/objects/p/${encodeURIComponent(STORED[0])}`))[1]) as {
      id: string
      n: number
    }[]
    assert.deepEqual(new Map(graph.map(({ id, n }) => [id, n])), new Map(STORED.map((id, n) => [id, n])))
    await projectsAreApart(host, [...PATHS, ...LONG.filter((id) => Buffer.byteLength(id) <= 128)], NOT_INLINE)
    await service.close()
    const files = listed(folder).filter((path) => !`${DATA}/`.startsWith(`${path}/`))
    assert.ok(files.length > 5)
    for (const path of files) assert.match(path.replace(`${DATA}/`, ''), OWN_FILES)
  })
}

test('case 13: hostile project ids stay apart', async (t) => {
  await projectsAreApart(
    await served(t),
    STORED.filter((id) => Buffer.byteLength(id) <= 128),
  )
})

async function projectsAreApart({ port, url }: Served, projects: readonly string[], data: string = ''): Promise<void> {
  const pathOf = (project: string): string =>
    `/objects/${encodeURIComponent(project).replace(/^\.+$/, (dots) => dots.replaceAll('.', '%2E'))}`
  for (const [n, project] of projects.entries()) {
    const upload = request(url, {
      path: pathOf(project),
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
    }).end(
      JSON.stringify([
        { id: 'same', n },
        { id: 'large', data },
      ]),
    )
    const [answer] = (await once(upload, 'response')) as [IncomingMessage]
    assert.deepEqual(
      [answer.statusCode, (JSON.parse(await text(answer)) as { created: number }).created],
      [200, 2],
      project,
    )
  }
  for (const [n, project] of projects.entries()) {
    assert.deepEqual(
      await get(port, `${pathOf(project)}/same/single`),
      [200, JSON.stringify({ id: 'same', n })],
      project,
    )
  }
}

test(`case 13: ${REFUSED.length} invalid ids get 400, in every place that takes an id`, async (t) => {
  const { url, port } = await served(t)
  const body = (content: string): RequestInit => ({ ...jsonUpload([]), body: content })
  for (const id of REFUSED) {
    const upload = await fetch(`${url}/objects/p`, body(`[{"id":"good"},{"id":"${id}"}]`))
    const { statusCode, code, message } = (await upload.json()) as { statusCode: number; code: string; message: string }
    assert.deepEqual([statusCode, code], [400, 'invalid_id'], message)
    assert.ok(message.length < 600 && !/[\p{Cc}\u2028\u2029]/u.test(message), message)
    assert.equal(
      (await fetch(`${url}/objects/p`, body(`[{"id":"holder","referencedId":"${id}"}]`))).status,
      200,
      'what cannot be an id is no reference',
    )
  }
  assert.deepEqual(await (await fetch(`${url}/api/diff/p`, body('{"objects":["good","holder"]}'))).json(), {
    good: false,
    holder: true,
  })
  for (const segment of [
    '%00',
    'a%00b',
    '%0A',
    '%7F',
    '%C2%85',
    '%E2%80%A8',
    '%ED%A0%80',
    '%FF',
    '%C0%AF',
    'x'.repeat(513),
    '%',
  ]) {
    for (const path of [`/objects/p/${segment}`, `/objects/p/${segment}/single`, `/objects/${segment}/a`])
      assert.equal((await get(port, path))[0], 400, path)
  }
  for (const id of REFUSED.filter((text) => !text.includes('\\ud') || text.includes('\\u00'))) {
    const diff = await fetch(`${url}/api/diff/p`, body(`{"objects":["${id}","holder"]}`))
    assert.deepEqual(
      Object.values((await diff.json()) as Record<string, boolean>),
      [false, true],
      'what cannot be an id is not held',
    )
  }
})
