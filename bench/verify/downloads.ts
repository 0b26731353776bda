import assert from 'node:assert/strict'
import { gunzipSync } from 'node:zlib'

/** A request to a service, wherever it is; `bytes` of the answer are as they were sent, not decoded. */
export type Ask = (
  path: string,
  request?: { readonly headers?: Readonly<Record<string, string>>; readonly body?: string },
) => Promise<Answered>

export interface Answered {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Buffer
}

/** A model as it was sent: texts by id. */
export interface SentModel {
  readonly rootId: string
  readonly texts: ReadonlyMap<string, string>
}

export interface Downloaded {
  /** Texts by id, in the order of their arrival. */
  readonly texts: ReadonlyMap<string, string>
  readonly headers: Headers
}

const FORMATS = ['text/plain', 'application/json'] as const
const CODINGS = ['gzip', 'identity'] as const
const IDS_PER_LIST = 1_000
const SINGLES_MAX = 100

/**
 * Downloads the model through every endpoint, in both formats and codings, and throws if anything differs from the
 * upload. Returns the number of requests.
 */
export async function verifyDownloads(ask: Ask, projectId: string, model: SentModel): Promise<number> {
  let requests = 0
  const counted: Ask = (path, request) => {
    requests += 1
    return ask(path, request)
  }
  for (const accept of FORMATS) {
    for (const coding of CODINGS) {
      await verifyGraph(counted, projectId, model, { Accept: accept, 'Accept-Encoding': coding })
      await verifyLists(counted, projectId, model, { Accept: accept, 'Accept-Encoding': coding })
    }
  }
  for (const coding of CODINGS) await verifyStreams(counted, projectId, model, coding)
  await verifyArchive(counted, projectId, model)
  await verifySingles(counted, projectId, model)
  await verifyDiff(counted, projectId, model)
  return requests
}

/** One download of a root of the model, with everything below it or, if the path says so, less. */
export async function downloadGraph(
  ask: Ask,
  path: string,
  headers: Readonly<Record<string, string>>,
  model: SentModel,
): Promise<Downloaded> {
  const answer = await ask(path, { headers })
  assert.equal(answer.status, 200, `${path} answered ${answer.status}: ${answer.bytes.subarray(0, 300).toString()}`)
  return { texts: textsOf(answer, model.texts), headers: answer.headers }
}

export function assertSame(
  found: ReadonlyMap<string, string>,
  expected: ReadonlyMap<string, string>,
  what: string,
): void {
  for (const [id, text] of expected)
    assert.ok(
      found.get(id) === text,
      `${what}: ${found.has(id) ? `${id} came back with other bytes` : `${id} is missing`}`,
    )
  assert.equal(found.size, expected.size, `${what}: something came that was not asked for`)
}

async function verifyGraph(
  ask: Ask,
  projectId: string,
  model: SentModel,
  headers: Readonly<Record<string, string>>,
): Promise<void> {
  const path = `/objects/${projectId}/${model.rootId}`
  const { texts, headers: answered } = await downloadGraph(ask, path, headers, model)
  const what = `${Object.values(headers).join(', ')} of the root`
  assertSame(texts, model.texts, what)
  assert.equal(texts.keys().next().value, model.rootId, `${what}: the root does not come first`)
  assert.equal(answered.get('stowage-missing-objects'), '0')
  const etag = answered.get('etag')
  if (etag !== null && answered.get('accept-ranges') === 'bytes')
    await verifyResume(ask, path, { ...headers, 'If-Range': etag })
}

/** Cuts the download at some places and continues from there, as a client does whose connection was lost. */
async function verifyResume(ask: Ask, path: string, headers: Readonly<Record<string, string>>): Promise<void> {
  const whole = (await ask(path, { headers })).bytes
  for (const at of [1, 10, whole.length >> 1, whole.length - 9]) {
    const start = await ask(path, { headers: { ...headers, Range: `bytes=0-${at - 1}` } })
    const rest = await ask(path, { headers: { ...headers, Range: `bytes=${at}-` } })
    assert.deepEqual([start.status, rest.status], [206, 206], `${path}: ranges at ${at}`)
    assert.equal(rest.headers.get('content-range'), `bytes ${at}-${whole.length - 1}/${whole.length}`)
    assert.ok(
      Buffer.concat([start.bytes, rest.bytes]).equals(whole),
      `${path}: the parts before and behind byte ${at} do not make the whole`,
    )
  }
}

async function verifyLists(
  ask: Ask,
  projectId: string,
  { texts }: SentModel,
  headers: Readonly<Record<string, string>>,
): Promise<void> {
  for (const ids of inLists([...texts.keys()])) {
    const body = JSON.stringify({ objects: JSON.stringify([...ids, 'not-there']) })
    const answer = await ask(`/api/getobjects/${projectId}`, {
      headers: { ...headers, 'Content-Type': 'application/json' },
      body,
    })
    assert.equal(answer.headers.get('stowage-missing-objects'), '1')
    assertSame(
      textsOf(answer, texts),
      new Map(ids.map((id) => [id, texts.get(id) ?? ''])),
      `${Object.values(headers).join(', ')} of a list`,
    )
  }
}

async function verifyStreams(ask: Ask, projectId: string, { texts }: SentModel, coding: string): Promise<void> {
  const headers = { 'Accept-Encoding': coding, 'Content-Type': 'application/json' }
  for (const slash of ['', '/']) {
    const answer = await ask(`/api/v2/projects/${projectId}/object-stream${slash}`, {
      headers,
      body: JSON.stringify({ objectIds: [...texts.keys()] }),
    })
    assertSame(textsOf(answer, texts), texts, `object-stream${slash}, ${coding}`)
  }
}

async function verifyArchive(ask: Ask, projectId: string, { rootId, texts }: SentModel): Promise<void> {
  const { status, headers, bytes } = await ask(`/objects/${projectId}/${rootId}?archive=gzip`)
  assert.deepEqual(
    [status, headers.get('content-type'), headers.get('content-encoding')],
    [200, 'application/gzip', null],
  )
  assertSame(textsOfLines(gunzipSync(bytes).toString()), texts, 'the archive')
}

async function verifySingles(ask: Ask, projectId: string, { texts }: SentModel): Promise<void> {
  const step = Math.max(1, Math.floor(texts.size / SINGLES_MAX))
  for (const id of [...texts.keys()].filter((_, at) => at % step === 0)) {
    for (const coding of CODINGS) {
      const answer = await ask(`/objects/${projectId}/${id}/single`, { headers: { 'Accept-Encoding': coding } })
      assert.equal(answer.status, 200)
      assert.ok(decoded(answer) === texts.get(id), `single, ${coding}: ${id} came back with other bytes`)
    }
  }
}

async function verifyDiff(ask: Ask, projectId: string, { texts }: SentModel): Promise<void> {
  const body = JSON.stringify({ objects: JSON.stringify([...texts.keys(), 'not-there']) })
  const held = JSON.parse(
    decoded(await ask(`/api/diff/${projectId}`, { headers: { 'Content-Type': 'application/json' }, body })),
  ) as Record<string, boolean>
  assert.equal(held['not-there'], false)
  assert.deepEqual(
    [...texts.keys()].filter((id) => !held[id]),
    [],
  )
}

function* inLists(ids: readonly string[]): Generator<readonly string[]> {
  for (let from = 0; from < ids.length; from += IDS_PER_LIST) yield ids.slice(from, from + IDS_PER_LIST)
}

function textsOf(answer: Answered, sent: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const text = decoded(answer)
  return answer.headers.get('content-type')?.startsWith('application/json')
    ? textsOfArray(text, sent)
    : textsOfLines(text)
}

function decoded({ headers, bytes }: Answered): string {
  return (headers.get('content-encoding') === 'gzip' ? gunzipSync(bytes) : bytes).toString()
}

function textsOfLines(text: string): ReadonlyMap<string, string> {
  assert.ok(text === '' || text.endsWith('\n'), 'the last line has no end')
  const lines = text
    .split('\n')
    .slice(0, -1)
    .map((line): [string, string] => [line.slice(0, line.indexOf('\t')), line.slice(line.indexOf('\t') + 1)])
  return withoutDuplicates(lines)
}

/** The ids are parsed; that their texts are those that were sent is compared as bytes of the whole. */
function textsOfArray(text: string, sent: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const ids = (JSON.parse(text) as readonly { readonly id: string }[]).map(({ id }) => id)
  assert.ok(
    text === `[${ids.map((id) => sent.get(id)).join(',')}]`,
    'the array has other bytes than the objects that were sent',
  )
  return withoutDuplicates(ids.map((id) => [id, sent.get(id) ?? '']))
}

function withoutDuplicates(entries: readonly (readonly [string, string])[]): ReadonlyMap<string, string> {
  const texts = new Map(entries)
  assert.equal(texts.size, entries.length, 'an object came twice')
  return texts
}
