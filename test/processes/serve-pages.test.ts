import { folderCredentials } from '../../src/credentials/folder-credentials.ts'
import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { issueToken } from '../../src/access/token-store.ts'
import { automation } from '../../src/automation-server/index.ts'
import { isLoopback, pagesLine, pagesOf } from '../../src/cli/server/serve-pages.ts'
import { newDataFolder, startServer, stowage } from '../cli/command.ts'

const BROWSER = {
  accept: 'text/html',
  'sec-fetch-site': 'none',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
}

test('a server on localhost has pages, and a link for the token of the environment', async (context) => {
  const folder = newDataFolder(context)
  const { token } = await issueToken(folderCredentials(folder), {
    projects: new Map([['demo', 'write']]),
    subject: 'ada',
    ttlSeconds: 60,
  })
  const server = await startServer(context, ['--data', folder, '--json', '--prefix', '/models'], {
    STOWAGE_TOKEN: token,
  })
  const { url, pagesUrl, signInUrl } = JSON.parse(server.line) as { url: string; pagesUrl: string; signInUrl: string }
  assert.equal(pagesUrl, `${url}/web`)
  assert.ok(!server.line.includes(token))
  for (const beginning of [`${new URL(url).origin}/`, url, `${url}/`]) {
    const { status, headers } = await fetch(beginning, { headers: BROWSER, redirect: 'manual' })
    assert.deepEqual([status, headers.get('location')], [303, '/models/web'], beginning)
  }
  assert.equal((await fetch(`${url}/`)).status, 404, 'programs are told as before')
  const code = new URL(signInUrl).searchParams.get('code') ?? ''
  assert.match(await (await fetch(signInUrl, { headers: BROWSER })).text(), /This link works once/)
  const signedIn = await fetch(`${url}/web/sign-in`, {
    method: 'POST',
    body: new URLSearchParams({ code }),
    headers: { origin: new URL(url).origin },
    redirect: 'manual',
  })
  assert.equal(signedIn.status, 303)
  const cookie = signedIn.headers.getSetCookie()[0].split(';')[0]
  assert.match(
    await (await fetch(pagesUrl, { headers: { ...BROWSER, cookie } })).text(),
    /href="\/models\/web\/projects\/demo"/,
  )
  assert.equal((await server.stop()).code, 0)
  const keyPath = join(folder, 'access/session-key')
  if (process.platform !== 'win32') assert.equal(statSync(keyPath).mode & 0o777, 0o600)
})

test('pages are served to other machines only on request', async (context) => {
  const data = newDataFolder(context)
  const hosts = [
    '127.0.0.1',
    '127.1.2.3',
    '::1',
    'localhost',
    'LOCALHOST',
    '0.0.0.0',
    '::',
    '192.168.1.1',
    'models.example',
    '127.0.0.1.example',
    '',
  ]
  assert.deepEqual(hosts.filter(isLoopback), hosts.slice(0, 5))
  const auto = automation()
  const has = (host: string, pages?: boolean): boolean =>
    pagesOf({ host, ...(pages === undefined ? {} : { pages }) }, auto, { credentials: folderCredentials(data) }) !==
    undefined
  assert.deepEqual(
    [has('127.0.0.1'), has('0.0.0.0'), has('0.0.0.0', true), has('127.0.0.1', false)],
    [true, false, true, false],
  )
  assert.deepEqual(await pagesLine(undefined, 'http://127.0.0.1:1'), {})
})

test('behind a proxy, links use the public address, and forms are accepted from it', async (context) => {
  const folder = newDataFolder(context)
  const { token } = await issueToken(folderCredentials(folder), {
    projects: new Map([['demo', 'read']]),
    subject: 'ada',
    ttlSeconds: 60,
  })
  const args = ['--data', folder, '--json', '--prefix', '/models', '--origin', 'https://models.example/']
  const server = await startServer(context, args, { STOWAGE_TOKEN: token })
  const { url, pagesUrl, signInUrl } = JSON.parse(server.line) as { url: string; pagesUrl: string; signInUrl: string }
  assert.equal(pagesUrl, 'https://models.example/models/web')
  assert.match(signInUrl, /^https:\/\/models\.example\/models\/web\/sign-in\?code=/)
  const signIn = async (origin: string): Promise<number> => {
    const answer = await fetch(`${url}/web/sign-in`, {
      method: 'POST',
      body: new URLSearchParams({ token }),
      headers: { origin },
      redirect: 'manual',
    })
    return answer.status
  }
  assert.deepEqual([await signIn('https://models.example'), await signIn(new URL(url).origin)], [303, 403])
})

test('an origin with a path or another scheme is refused', async () => {
  for (const origin of [
    'https://models.example/models',
    'models.example',
    'ftp://models.example',
    'https://a@models.example',
  ]) {
    const { code, stderr } = await stowage(['serve', '--origin', origin])
    assert.equal(code, 2, origin)
    assert.match(stderr, /It must be an origin, such as https:\/\/models\.example/)
  }
})
