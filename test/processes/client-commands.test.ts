import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { PartialFile } from '../../src/cli/client/partial-file.ts'
import { served } from '../http/served.ts'
import { COMMAND, newDataFolder, spawnCommand, stowage } from '../cli/command.ts'
import { eventually } from '../support/patience.ts'

const MODEL = `[{"id":"leaf","speckle_type":"Wall","n":1e400},
{"id":"top","speckle_type":"House","walls":[{"referencedId":"leaf"},{"referencedId":"gone"}]}]`

test('the client commands print their results and end with documented exit codes', async (t) => {
  const folder = newDataFolder(t)
  mkdirSync(folder)
  const file = join(folder, 'model.json')
  writeFileSync(file, MODEL)
  const { url } = await served(t)
  const env = { STOWAGE_URL: url, STOWAGE_PROJECT: 'demo' }
  const uploaded = await stowage(['upload', file], env)
  assert.deepEqual([uploaded.code, uploaded.stdout], [0, 'top\n'], uploaded.stderr)
  assert.match(uploaded.stderr, /^stowage: 2 objects: 2 objects sent, 0 held already, .*\n$/)

  const output = join(folder, 'out.json')
  const [downloaded, listed, compared, got, refused] = await Promise.all([
    stowage(['download', 'top', '--format', 'json', '-o', output, '--json'], env),
    stowage(['ls', 'top'], env),
    stowage(['has', file, '--json'], env),
    stowage(['get', 'leaf', 'nobody'], env),
    stowage(['upload', file, '--url', url]),
  ])
  assert.equal(downloaded.code, 3, 'an object is missing')
  const summary = JSON.parse(downloaded.stdout) as { objects: number; missing: number }
  assert.deepEqual([summary.objects, summary.missing], [2, 1])
  assert.deepEqual(JSON.parse(readFileSync(output, 'utf8')), (JSON.parse(MODEL) as unknown[]).toReversed())
  assert.equal(existsSync(`${output}.partial`), false)
  assert.deepEqual(
    listed.stdout.split('\n').map((line) => line.split(/\s+/)),
    [['id', 'bytes', 'children', 'type'], ['top', '93', '2', 'House'], ['leaf', '45', '0', 'Wall'], ['']],
  )
  assert.equal(listed.code, 3)
  assert.deepEqual(compared, { code: 0, stdout: '{"objects":2,"held":2,"missing":0}\n', stderr: '' })
  assert.deepEqual(got, {
    code: 3,
    stdout: '{"id":"leaf","speckle_type":"Wall","n":1e400}\n',
    stderr: 'stowage: 1 object not held: "nobody"\n',
  })
  assert.equal(refused.code, 2)
  assert.match(refused.stderr, /^stowage: --project is missing: .*\(see "stowage upload --help"\)\n$/)
})

test('Ctrl-C ends an upload from an endless pipe', async (t) => {
  const { url, service } = await served(t)
  const child = spawn(
    process.execPath,
    [...COMMAND, 'upload', '-', '--url', url, '--project', 'demo', '--quiet', '--batch-bytes', '1'],
    { stdio: ['pipe', 'pipe', 'pipe'] },
  )
  t.after(() => child.kill('SIGKILL'))
  child.stdin.write(Array.from({ length: 3_000 }, (_, at) => `{"id":"${at}"}\n`).join(''))
  await eventually(async () => {
    for await (const projects of service.projects()) if (projects.length > 0) return true
    return false
  }, 'something is stored')
  child.kill('SIGINT')
  const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'exit') as Promise<[number | null]>])
  assert.deepEqual([code, stderr], [130, 'stowage: stopped by SIGINT; run the command again to continue\n'])
})

test('an upload waits for an unavailable server, says so, and resumes when it returns', async (t) => {
  const folder = newDataFolder(t)
  mkdirSync(folder)
  const file = join(folder, 'model.json')
  writeFileSync(file, MODEL)
  const { server, service, port, url } = await served(t)
  server.close()
  await once(server, 'close')
  const child = spawnCommand(['upload', file, '--url', url, '--project', 'demo', '--retry-for', '60s'])
  t.after(() => child.kill('SIGKILL'))
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (piece: string) => (stderr += piece))
  while (!stderr.includes('\n')) await once(child.stderr, 'data')
  assert.match(
    stderr,
    /^stowage: waiting for http:\/\/127\.0\.0\.1:\d+ \(connect ECONNREFUSED 127\.0\.0\.1:\d+\), for \d\d? s more\n$/,
  )
  const late = createServer((req, res) => service.node(req, res)).listen(port, '127.0.0.1')
  t.after(() => late.close().closeAllConnections())
  const [stdout, [code]] = await Promise.all([text(child.stdout), once(child, 'exit') as Promise<[number | null]>])
  assert.deepEqual([code, stdout], [0, 'top\n'], stderr)
})

test('--retry-for bounds the wait, and 0 disables it', async (t) => {
  const { server, url } = await served(t)
  server.close()
  await once(server, 'close')
  for (const time of ['0', '2s']) {
    const startedMs = performance.now()
    const { code, stdout, stderr } = await stowage(['get', 'a', '--url', url, '--project', 'demo', '--retry-for', time])
    assert.deepEqual([code, stdout], [1, ''], stderr)
    assert.match(stderr, /failed in transit: connect ECONNREFUSED .*; is a server running at /)
    assert.ok(time === '0' || performance.now() - startedMs > 2_000)
  }
  const { code, stderr } = await stowage(['get', 'a', '--url', url, '--project', 'demo', '--retry-for', 'ever'])
  assert.equal(code, 2, stderr)
})

test('a partial file resumes only the same download', async (t) => {
  const folder = newDataFolder(t)
  mkdirSync(folder)
  const path = join(folder, 'x.partial')
  const first = new PartialFile(path, 'one')
  assert.equal(await first.load(), undefined)
  await first.begin('"old"')
  await first.write(0, Buffer.from('old bytes'))
  await first.begin('"tag"')
  await first.write(0, Buffer.from('01234'))
  await first.write(5, Buffer.from('56789'))
  await first.close({ keep: true })
  const second = new PartialFile(path, 'one')
  const kept = await second.load()
  assert.deepEqual([kept?.etag, kept?.bytes], ['"tag"', 10])
  const pieces: Uint8Array[] = []
  for await (const piece of kept?.read(9) ?? []) pieces.push(piece)
  assert.equal(Buffer.concat(pieces).toString(), '012345678')
  await second.close({ keep: true })
  const other = new PartialFile(path, 'two')
  assert.equal(await other.load(), undefined)
  await other.close({ keep: false })
  assert.equal(existsSync(path), false)
})
