import { folderCredentials } from '../../src/credentials/folder-credentials.ts'
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { text } from 'node:stream/consumers'
import { issueToken, revokeToken } from '../../src/access/token-store.ts'
import { newDataFolder, startServer, stowage } from '../cli/command.ts'
import { eventually } from '../support/patience.ts'

interface ServeLine {
  readonly url: string
  readonly pid: number
  readonly storage: string
}

/** An upload that has begun: the server has read its headers and the first byte of its body. */
async function beginUpload(url: string, token: string): Promise<{ finish(): Promise<number | undefined> }> {
  const body = '[{"id":"late","data":"x"}]'
  const upload = request(`${url}/objects/demo`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'content-length': body.length,
      expect: '100-continue',
    },
  })
  const answer = once(upload, 'response') as Promise<[NodeJS.ReadableStream & { statusCode?: number }]>
  answer.catch(() => undefined)
  upload.flushHeaders()
  await once(upload, 'continue')
  upload.write(body.slice(0, 1))
  return {
    finish: async () => {
      upload.end(body.slice(1))
      const [response] = await answer
      await text(response)
      return response.statusCode
    },
  }
}

async function newToken(folder: string): Promise<{ token: string; jti: string }> {
  const { token, record } = await issueToken(folderCredentials(folder), {
    projects: new Map([['demo', 'write']]),
    subject: 'test',
    ttlSeconds: 600,
  })
  return { token, jti: record.jti }
}

test('a server runs from its first line to its end, and its folder is usable afterwards', async (context) => {
  const folder = newDataFolder(context)
  const server = await startServer(context, [
    '--data',
    folder,
    '--json',
    '--prefix',
    '/models',
    '--upload-status',
    '201',
    '--cors',
    'https://viewer.example',
    '--nesting-max',
    '3',
  ])
  const { url, pid, storage } = JSON.parse(server.line) as ServeLine
  assert.match(url, /^http:\/\/127\.0\.0\.1:[1-9][0-9]*\/models$/)
  assert.deepEqual([pid, storage], [server.child.pid, 'filesystem'])

  const { token, jti } = await newToken(folder)
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    origin: 'https://viewer.example',
  }
  const post = async (value: unknown): Promise<Response> =>
    fetch(`${url}/objects/demo`, { method: 'POST', headers, body: JSON.stringify(value) })
  const read = async (): Promise<Response> => fetch(`${url}/objects/demo/a/single`, { headers })
  const stored = await post([{ id: 'a', data: randomBytes(100_000).toString('base64') }])
  assert.deepEqual([stored.status, stored.headers.get('access-control-allow-origin')], [201, 'https://viewer.example'])
  assert.equal((await post([{ id: 'deep', a: [[[]]] }])).status, 400)
  assert.equal((await read()).status, 200)
  assert.equal((await fetch(`${url}/objects/demo/a/single`)).status, 401)
  assert.equal((await fetch(`${url}/objects/other/a/single`, { headers })).status, 403)

  const [refused, unconfirmed] = await Promise.all([
    stowage(['check', '--data', folder]),
    stowage(['project', 'remove', 'demo', '--data', folder]),
  ])
  assert.deepEqual([unconfirmed.code, unconfirmed.stdout], [2, ''], 'nobody can be asked')
  assert.deepEqual([refused.code, refused.stdout], [1, ''])
  assert.match(refused.stderr, new RegExp(`^stowage: .*in use by process ${pid} .*\n$`))

  const upload = await beginUpload(url, token)
  await revokeToken(folderCredentials(folder), jti)
  await eventually(async () => (await read()).status === 401, 'the revocation is seen')
  const stopped = server.stop()
  await eventually(async () => (await read().catch(() => undefined))?.status !== 401, 'the server closes')
  assert.equal(await upload.finish(), 201, 'what was under way is finished')
  assert.deepEqual(await stopped, { code: 0, stdout: `${server.line}\n`, stderr: '' })
  assert.equal(existsSync(join(folder, 'stowage.lock')), false)

  assert.deepEqual(await stowage(['check', '--data', folder]), { code: 0, stdout: 'no damage (0 notes)\n', stderr: '' })
  flipByte(join(folder, 'packs'))
  const damaged = await stowage(['check', '--data', folder, '--json'])
  const lines = damaged.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { severity?: string; projectId?: string; summary?: { damage: number } })
  assert.deepEqual([damaged.code, damaged.stderr], [4, ''])
  assert.deepEqual([lines[0].severity, lines[0].projectId, lines.at(-1)?.summary?.damage], ['damage', 'demo', 1])

  assert.deepEqual(await stowage(['project', 'remove', 'demo', '--yes', '--data', folder]), {
    code: 0,
    stdout: 'removed demo\n',
    stderr: '',
  })
  assert.deepEqual(await stowage(['project', 'list', '--data', folder]), { code: 0, stdout: '', stderr: '' })
})

/** Flips a bit in the middle of the largest file below the folder. */
function flipByte(folder: string): void {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
  const largest = files.sort((a, b) => statSync(b).size - statSync(a).size)[0]
  const bytes = readFileSync(largest)
  bytes[bytes.length >> 1] ^= 1
  writeFileSync(largest, bytes)
}

test('a server in memory says so, and a second signal stops it at once', async (context) => {
  const folder = newDataFolder(context)
  const server = await startServer(context, ['--data', folder, '--storage', 'memory', '--grace-ms', '60000'])
  assert.match(server.line, /^stowage serves from memory on http:\/\/127\.0\.0\.1:[0-9]+$/)
  const url = server.line.slice(server.line.indexOf('http'))
  await beginUpload(url, (await newToken(folder)).token)
  server.child.kill('SIGINT')
  await assert.rejects(async () => {
    for (;;) await fetch(url)
  }, 'no new connections')
  assert.equal(server.child.exitCode, null, 'it waits for what is under way')
  assert.equal((await server.stop('SIGINT')).code, 130)
  assert.deepEqual(readdirSync(folder), ['access'])
})

test('a command that only reads a folder does not create one', async (context) => {
  const folder = newDataFolder(context)
  for (const [option, args] of [
    ['--data', ['check', '--data', folder]],
    ['--from', ['copy', '--from', folder, '--to', `${folder}-copy`]],
  ] as const) {
    const { code, stderr } = await stowage(args)
    assert.equal(code, 1)
    assert.match(stderr, new RegExp(`there is no storage in the folder .*; name one with ${option}$`, 'm'))
  }
  assert.equal(existsSync(folder), false)
})
