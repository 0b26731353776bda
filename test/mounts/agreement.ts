import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { ObjectService } from '../../src/index.ts'
import { openService, type ServedOptions } from '../http/served.ts'
import { eventually } from '../support/patience.ts'
import { ask, type Answered, describing, type Sent } from './ask.ts'
import { HELD, HOSTILE_IDS, hostilePaths, LIMITS, methods, reads, uploads } from './requests.ts'
import { type Host, HOST_ANSWER, HOSTS, listen } from './hosts.ts'

const PROJECT = 'p%2F1'
const AT_ONCE = 8

/** A service that holds `HELD`, and lives as long as the test. */
async function filled(t: TestContext, options: ServedOptions = {}): Promise<ObjectService> {
  const service = openService({ limits: LIMITS, ...options })
  t.after(() => service.close({ graceMs: 0 }))
  const body = new Blob([JSON.stringify(HELD)]).stream()
  await service.project(decodeURIComponent(PROJECT)).upload(body, 'application/json')
  return service
}

/** Answers to all, some asked at once, in the order of the questions. */
async function answers(
  sents: readonly Sent[],
  answer: (sent: Sent) => Promise<Answered>,
): Promise<readonly Answered[]> {
  const answered: Answered[] = []
  for (let at = 0; at < sents.length; at += AT_ONCE)
    answered.push(...(await Promise.all(sents.slice(at, at + AT_ONCE).map(answer))))
  return answered
}

const GRAPH = /^\/objects\/[^/]+\/[^/?]+(?:\?.*)?$/

/** The first answers of a graph may come before its plan is there, and then have no length and no ETag. */
function isUnplanned({ path }: Sent, { status, headers }: Answered): boolean {
  return GRAPH.test(path) && status === 200 && headers.etag === undefined
}

/**
 * What plain `http` without a prefix answers: the measure of all others. Reads are asked before, until each graph has
 * its plan.
 */
async function plainAnswers(
  t: TestContext,
  service: ObjectService,
  sents: readonly Sent[],
): Promise<readonly Answered[]> {
  const port = await listen(t, await HOSTS[0].open(service, ''), service)
  for (const sent of sents)
    await eventually(async () => !isUnplanned(sent, await ask(port, sent)), `${sent.path} has a plan`)
  return answers(sents, (sent) => ask(port, sent))
}

/** Hosts that speak in `Request` see paths as the URL standard makes them: without dot segments. */
function isTellable(host: Host, { path }: Sent): boolean {
  return host.style === 'node' || !/\/(?:\.|%2e){1,2}(?:[/?]|$)/i.test(path)
}

/**
 * Tests that every mount, below each of these prefixes, answers as plain `http` does: the same status, headers and
 * bytes.
 */
export function mountsAgree(prefixes: readonly string[]): void {
  const onEveryMount = async (
    t: TestContext,
    service: ObjectService,
    check: (host: Host, port: number, prefix: string) => Promise<void>,
  ): Promise<void> => {
    for (const host of HOSTS) {
      for (const prefix of prefixes) {
        const port = await listen(t, await host.open(service, prefix), service)
        await t.test(`${host.name} under "${prefix}"`, () => check(host, port, prefix))
      }
    }
  }

  for (const [what, sents] of [
    ['reads', reads(PROJECT)],
    ['hostile ids', hostilePaths(PROJECT)],
    ['methods', methods(PROJECT)],
  ] as const) {
    void test(`${what} get the same responses from every mount`, async (t) => {
      const service = await filled(t)
      const expected = await plainAnswers(t, service, sents)
      await onEveryMount(t, service, async (host, port, prefix) => {
        const got = await answers(sents, (sent) => ask(port, sent, prefix))
        for (const [n, sent] of sents.entries())
          if (isTellable(host, sent)) assert.deepEqual(got[n], expected[n], JSON.stringify(sent))
      })
    })
  }

  void test('fetch without a server returns the same responses', async (t) => {
    const sents = [...reads(PROJECT), ...hostilePaths(PROJECT)]
    const service = await filled(t)
    const expected = await plainAnswers(t, service, sents)
    for (const [n, sent] of sents.entries()) {
      const { method = 'GET', path, headers, body } = sent
      if (!isTellable({ name: 'fetch', style: 'fetch', open: HOSTS[0].open }, sent)) continue
      const response = await service.fetch(
        new Request(`http://in.process${path}`, {
          method,
          headers: { 'x-request-id': 'the-same', ...headers },
          ...(body === undefined ? {} : { body }),
        }),
      )
      const text = Buffer.from(await response.arrayBuffer()).toString('latin1')
      assert.deepEqual(
        { status: response.status, headers: describing(response.headers), body: text },
        expected[n],
        JSON.stringify(sent),
      )
    }
  })

  void test('every such request finds hostile ids', async (t) => {
    const service = await filled(t)
    const found = await plainAnswers(
      t,
      service,
      HOSTILE_IDS.filter((id) => id !== 'root').map((id) => ({
        path: `/objects/${PROJECT}/${encodeURIComponent(id)}/single`,
      })),
    )
    assert.deepEqual(
      found.map(({ body }) => (JSON.parse(Buffer.from(body, 'latin1').toString()) as { id: string }).id),
      HOSTILE_IDS.filter((id) => id !== 'root'),
    )
  })

  void test('uploads get the same responses from every mount', async (t) => {
    const service = await filled(t)
    const port = await listen(t, await HOSTS[0].open(service, ''), service)
    const expected: Answered[] = []
    // One after the other: they build on each other.
    for (const sent of uploads('plain')) expected.push(await ask(port, sent))
    assert.deepEqual(new Set(expected.map(({ status }) => status)), new Set([200, 400, 409, 413, 415]))
    let projects = 0
    await onEveryMount(t, service, async (_host, port, prefix) => {
      const sents = uploads(`q${projects++}`)
      for (const [n, sent] of sents.entries())
        assert.deepEqual(await ask(port, sent, prefix), expected[n], `${n}: ${JSON.stringify(sent).slice(0, 200)}`)
    })
  })

  void test('paths of others pass to the host, with any method', async (t) => {
    const service = await filled(t)
    const paths = [
      '/',
      '/objects',
      '/objects/',
      '/objects/p/',
      '/objects/p/o/',
      '/objects/p/o/twice',
      '/api/diff/p/',
      '/OBJECTS/p',
      '/other',
      '/objects/p/o%2Fsingle/x',
      '/favicon.ico',
    ]
    await onEveryMount(t, service, async (host, port, prefix) => {
      for (const path of paths) {
        for (const method of ['GET', 'POST', 'DELETE']) {
          const { status, body } = await ask(port, { method, path }, prefix)
          assert.deepEqual(
            [status, host.style === 'node' ? body : (JSON.parse(body) as { code: string }).code],
            [404, host.style === 'node' ? HOST_ANSWER : 'route_not_found'],
            `${method} ${path}`,
          )
        }
      }
      if (prefix !== '') assert.equal((await ask(port, { path: `${prefix}objects/${PROJECT}/root` })).status, 404)
      if (prefix !== '') assert.equal((await ask(port, { path: `/objects/${PROJECT}/root` })).status, 404)
    })
  })

  void test("the service's own prefix follows the mount's", async (t) => {
    const service = await filled(t, { prefix: '/v1' })
    await onEveryMount(t, service, async (_host, port, prefix) => {
      assert.equal((await ask(port, { path: `${prefix}/v1/objects/${PROJECT}/root` })).status, 200)
      assert.equal((await ask(port, { path: `${prefix}/objects/${PROJECT}/root` })).status, 404)
    })
  })
}
