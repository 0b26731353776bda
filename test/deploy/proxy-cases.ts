import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { stowage } from '../cli/command.ts'
import { countingProxy } from '../cli/proxy.ts'
import { writeModel } from '../cli/model-file.ts'
import { PATIENCE_MS } from '../support/patience.ts'
import { type Answer, ask, askHttp2, type Proxied, type Question, runToEnd, scratchFolder } from './support.ts'

const OBJECTS = 6_000
/** Some way into the answer, which has about 1.7 MB. */
const BREAK_AT_BYTES = 500_000
const OVER_LIMIT_BYTES = 60 * 1_048_576
const TRIES_MAX = 5
/** Until the proxy has printed why it cut a response. */
const LOG_DELAY_MS = 200
const CHUNK = Buffer.alloc(65_536, ' ')

/** What must hold through any proxy in front of Stowage that is set up as documented. */
export function proxyCases(name: string, start: (t: TestContext, args?: readonly string[]) => Promise<Proxied>): void {
  void test(`${name}: a model uploads and downloads, even over broken connections`, async (t) => {
    const proxied = await start(t)
    const folder = scratchFolder(t)
    const [model, copy] = [join(folder, 'model.txt'), join(folder, 'copy.txt')]
    const root = await writeModel(model, { objects: OBJECTS })
    const counted = await countingProxy(t, proxied.url)
    const url = counted.url.replace('http:', 'https:')
    const env = { STOWAGE_TOKEN: proxied.token, NODE_EXTRA_CA_CERTS: proxied.caPath }
    const to = ['--url', url, '--project', 'demo', '--quiet', '--json']
    const up = await stowage(['upload', model, ...to], env)
    assert.equal(up.code, 0, up.stderr)
    await waitForPlan(proxied, root)
    counted.reset(BREAK_AT_BYTES)
    const down = await stowage(['download', root, ...to, '-o', copy], env)
    assert.equal(down.code, 0, down.stderr)
    const { resumes, restarts } = JSON.parse(down.stdout) as { readonly resumes: number; readonly restarts: number }
    assert.ok(resumes >= 2, `the connection broke ${counted.breaks()} times, the download resumed ${resumes} times`)
    assert.equal(restarts, 0)
    const sorted = async (path: string): Promise<string[]> => (await readFile(path, 'utf8')).split('\n').sort()
    assert.deepEqual(await sorted(copy), await sorted(model))
    await answersParts(proxied, root)
  })

  void test(`${name}: the 413 of Stowage arrives while the client still sends`, async (t) => {
    const proxied = await start(t)
    const target = `${proxied.url}/objects/demo`
    const headers = { 'Content-Type': 'application/json' }
    const body = Array<Uint8Array>(OVER_LIMIT_BYTES / CHUNK.length).fill(CHUNK)
    const announced = { ...headers, 'Content-Length': String(OVER_LIMIT_BYTES) }
    for (const each of [headers, announced]) {
      const answer = await ask(proxied, target, { method: 'POST', headers: each, body })
      assertTooLarge(answer.status, answer.body)
    }
    const overHttp2 = await askHttp2(proxied, target, { method: 'POST', headers, body })
    assertTooLarge(overHttp2.status, overHttp2.body)
    const path = join(scratchFolder(t), 'large.json')
    await writeFile(path, Buffer.alloc(OVER_LIMIT_BYTES, ' '))
    const authorization = `Authorization: Bearer ${proxied.token}`
    const sent = ['--header', authorization, '--header', 'Content-Type: application/json', '--data-binary', `@${path}`]
    const wanted = ['--silent', '--http1.1', '--cacert', proxied.caPath, '--write-out', '\n%{http_code}']
    const [printed, status] = runToEnd('curl', [...wanted, ...sent, target]).split('\n')
    assertTooLarge(Number(status), printed)
  })

  void test(`${name}: an upload reaches Stowage while it is sent`, async (t) => {
    const proxied = await start(t)
    const metric = async (): Promise<string | undefined> =>
      /^stowage_uploads_in_flight(?:\{.*?\})? (\d+)$/m.exec(await (await fetch(proxied.metricsUrl)).text())?.[1]
    async function* halves(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('[{"id":"first"},')
      for (const deadline = performance.now() + PATIENCE_MS; (await metric()) !== '1'; await delay(50))
        assert.ok(performance.now() < deadline, 'the proxy keeps the first half of an upload to itself')
      yield Buffer.from('{"id":"second"}]')
    }
    const headers = { 'Content-Type': 'application/json' }
    const answer = await ask(proxied, `${proxied.url}/objects/demo`, { method: 'POST', headers, body: halves() })
    assert.equal(answer.status, 200, answer.body.toString())
  })

  void test(`${name}: people sign in on the pages`, async (t) => {
    const proxied = await start(t)
    const { status, cookie } = await signIn(proxied, new URL(proxied.url).origin)
    assert.equal(status, 303)
    assert.match(cookie, /^__Host-stowage-session=.*; Secure/)
  })

  void test(`${name}: a form of a foreign page is refused`, async (t) => {
    const proxied = await start(t)
    assert.equal((await signIn(proxied, 'https://evil.example')).status, 403)
  })
}

/** Sends the form for signing in, as a page of `origin` would. */
export async function signIn(
  proxied: Proxied,
  origin: string,
): Promise<{ readonly status: number; readonly cookie: string }> {
  const body = [Buffer.from(new URLSearchParams({ token: proxied.token }).toString())]
  const headers = { Origin: origin, 'Content-Type': 'application/x-www-form-urlencoded' }
  const answer = await askUntilWhole(proxied, `${proxied.url}/web/sign-in`, { method: 'POST', headers, body })
  return { status: answer.status, cookie: answer.headers['set-cookie']?.[0] ?? '' }
}

/** Caddy 2.6 sometimes cuts a response to `POST`, and says so in its log (docs/deploy.md): then the request is repeated. */
async function askUntilWhole(proxied: Proxied, url: string, question: Question): Promise<Answer> {
  for (let triesLeft = TRIES_MAX - 1; ; triesLeft--) {
    try {
      return await ask(proxied, url, question)
    } catch (error) {
      await delay(LOG_DELAY_MS)
      if (triesLeft === 0 || !proxied.complaints().includes('aborting with incomplete response')) throw error
    }
  }
}

/** Before its plan is made, a model may be sent without a length, and such an answer cannot be resumed. */
async function waitForPlan(proxied: Proxied, root: string): Promise<void> {
  const headers = { Accept: 'text/plain', 'Accept-Encoding': 'gzip' }
  const head = await ask(proxied, `${proxied.url}/objects/demo/${root}`, { method: 'HEAD', headers })
  assert.equal(head.status, 200)
}

/**
 * A part of an answer is a part through the proxy as well, and nothing compresses anew what has a length and an entity
 * tag.
 */
async function answersParts(proxied: Proxied, root: string): Promise<void> {
  const url = `${proxied.url}/objects/demo/${root}`
  for (const coding of ['gzip', 'identity', undefined]) {
    const headers = { Accept: 'text/plain', ...(coding === undefined ? {} : { 'Accept-Encoding': coding }) }
    const whole = await ask(proxied, url, { headers })
    const { etag = '', 'content-length': length } = whole.headers
    assert.deepEqual([whole.status, length], [200, String(whole.body.length)])
    assert.match(etag, /^"/, 'the entity tag stays strong')
    const from = Math.floor(whole.body.length / 2)
    const part = await ask(proxied, url, { headers: { ...headers, Range: `bytes=${from}-`, 'If-Range': etag } })
    assert.equal(part.status, 206)
    assert.equal(part.headers['content-range'], `bytes ${from}-${whole.body.length - 1}/${whole.body.length}`)
    assert.ok(part.body.equals(whole.body.subarray(from)))
  }
}

function assertTooLarge(status: number, body: Uint8Array | string): void {
  assert.equal(status, 413, String(body))
  assert.equal((JSON.parse(String(body)) as { readonly code: string }).code, 'request_too_large')
}
