import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SignJWT } from 'jose'
import { KEY, started } from './started.ts'

async function serves(
  url: string,
  token: string,
  paths: { readonly upload: string; readonly graph: string },
): Promise<void> {
  const authorization = `Bearer ${token}`
  assert.equal((await fetch(url + paths.graph)).status, 401)
  const upload = await fetch(url + paths.upload, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: '[{"id":"a","n":1.50}]',
  })
  assert.equal(upload.status, 200, await upload.text())
  assert.equal(await (await fetch(url + paths.graph, { headers: { authorization } })).text(), '[{"id":"a","n":1.50}]')
}

const PATHS = { upload: '/models/objects/demo', graph: '/models/objects/demo/a' }
const EXAMPLES: readonly (readonly [string, () => Promise<unknown>])[] = [
  ['express', () => import('./examples/express.ts')],
  ['koa', () => import('./examples/koa.ts')],
  ['fastify', () => import('./examples/fastify.ts')],
  ['hono', () => import('./examples/hono.ts')],
]

for (const [name, load] of EXAMPLES) {
  void test(`the example for ${name} runs`, async (t) => {
    const { url } = await started(t, load)
    await serves(url, 'open sesame', PATHS)
    assert.deepEqual(await (await fetch(url)).json(), { hello: 'from the host' })
  })
}

void test('the example for plain http runs', async (t) => {
  const token = await new SignJWT({ stowage: { projects: { demo: 'write' } } })
    .setProtectedHeader({ alg: 'HS256' })
    .setIssuer('https://accounts.example')
    .setAudience('models')
    .setSubject('ada')
    .setJti('1')
    .setIssuedAt()
    .setExpirationTime('5m')
    .sign(KEY)
  const { url } = await started(t, () => import('./examples/http.ts'))
  await serves(url, token, PATHS)
  assert.equal((await fetch(url)).status, 404)
})

void test("the example with the host's own routes runs", async (t) => {
  const { url } = await started(t, () => import('./examples/own-routes.ts'))
  await serves(url, 'open sesame', { upload: '/projects/demo/versions', graph: '/projects/demo/versions/a' })
})

void test('the example without a port runs', async () => {
  assert.equal((await import('./examples/fetch.ts')).kept, '{"id":"a","text":"kept"}')
})
