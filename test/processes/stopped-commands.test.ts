import assert from 'node:assert/strict'
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { buildModel } from '../support/model.ts'
import { served } from '../http/served.ts'
import { COMMAND, newDataFolder, stowage } from '../cli/command.ts'
import { eventually } from '../support/patience.ts'

const STOPPED = 'run the command again to continue\n'

/** The command with pipes that the test holds. */
function pipedCommand(t: TestContext, url: string, args: readonly string[]): ChildProcessWithoutNullStreams {
  const child = spawn(process.execPath, [...COMMAND, ...args, '--url', url, '--project', 'demo', '--quiet'], {
    env: { ...process.env, STOWAGE_TOKEN: '' },
  })
  t.after(() => child.kill('SIGKILL'))
  child.stdin.on('error', () => undefined)
  return child
}

async function exitOf(
  child: ChildProcessWithoutNullStreams,
): Promise<{ readonly code: number | null; readonly stderr: string }> {
  const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'exit') as Promise<[number | null]>])
  return { code, stderr }
}

function folderWith(t: TestContext, files: Readonly<Record<string, string>>): string {
  const folder = newDataFolder(t)
  mkdirSync(folder)
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content)
  return folder
}

test('a signal ends a command with unread output, and one that waits for input', async (t) => {
  const { url } = await served(t)
  const model = buildModel({ objects: 3_000 })
  const folder = folderWith(t, { 'model.txt': model.objects.map(({ id, json }) => `${id}\t${json}\n`).join('') })
  assert.equal((await stowage(['upload', join(folder, 'model.txt'), '--url', url, '--project', 'demo'])).code, 0)
  const stuck = pipedCommand(t, url, ['download', model.rootId])
  await once(stuck.stdout, 'readable')
  stuck.kill('SIGTERM')
  assert.deepEqual(await exitOf(stuck), { code: 143, stderr: `stowage: stopped by SIGTERM; ${STOPPED}` })

  const output = join(folder, 'out.txt')
  const waiting = pipedCommand(t, url, ['get', '-', '--single', '-o', output])
  waiting.stdin.write(`${model.rootId}\n`)
  await eventually(() => readdirSync(folder).includes('out.txt.unfinished'), 'the file is begun')
  waiting.kill('SIGINT')
  assert.deepEqual(await exitOf(waiting), { code: 130, stderr: `stowage: stopped by SIGINT; ${STOPPED}` })
  assert.deepEqual(readdirSync(folder), ['model.txt'], 'what came so far is not given out as the whole')

  const known = pipedCommand(t, url, ['upload', join(folder, 'model.txt'), '--have', '-'])
  known.stdin.write('{"id":"first"}\n'.repeat(100_000))
  await once(known.stdin, 'drain')
  known.kill('SIGINT')
  assert.deepEqual(await exitOf(known), { code: 130, stderr: `stowage: stopped by SIGINT; ${STOPPED}` })
})

test('a failing command ends even while its standard input is open', async (t) => {
  const { url } = await served(t)
  const failing = pipedCommand(t, `${url}/elsewhere`, ['upload', '-'])
  failing.stdin.write(Array.from({ length: 3_000 }, (_, at) => `{"id":"${at}"}\n`).join(''))
  const { code, stderr } = await exitOf(failing)
  assert.equal(code, 1)
  assert.match(stderr, /^stowage: POST .* answered 404: .*; does --url name the service/)
})

test('an invalid command line gives exit code 2, whatever detects it, and leaves nothing', async (t) => {
  const { url } = await served(t)
  const folder = folderWith(t, {})
  const env = { STOWAGE_URL: url, STOWAGE_PROJECT: 'demo', STOWAGE_TOKEN: '' }
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [['download', 'a', '-o', folder], /is a folder; name the file/],
    [['get', 'a', '-o', join(folder, 'none', 'x')], /there is no folder/],
    [['download', '..'], /"\.\." cannot be part of a URL/],
    [['get', 'a', '--url', 'http://user:password@127.0.0.1/'], /no credentials/],
    [['get', 'a', '--token-file', join(folder, 'none')], /there is no token file/],
    [['upload', '-', '--have', '-'], /can be read once only/],
    [['upload', 'x', '--concurrency', '1000000'], /must be 1000 or less/],
    [['download', 'a', '--json', '-o', '-'], /--json needs --output/],
  ]
  const outcomes = await Promise.all(cases.map(([args]) => stowage(args, env)))
  for (const [at, [args, message]] of cases.entries()) {
    const { code, stdout, stderr } = outcomes[at]
    assert.deepEqual([code, stdout], [2, ''], `${args.join(' ')}: ${stderr}`)
    assert.match(stderr, message)
    assert.doesNotMatch(stderr, /password@/)
  }
  assert.deepEqual(readdirSync(folder), [])
})

test('text of objects cannot look like another line, and a file of ids may begin with a byte order mark', async (t) => {
  const { url } = await served(t)
  const env = { STOWAGE_URL: url, STOWAGE_PROJECT: 'demo' }
  const folder = folderWith(t, { 'a.json': JSON.stringify({ id: 'a', speckle_type: 'first\nsecond\u001b[31m' }) })
  assert.equal((await stowage(['upload', join(folder, 'a.json')], env)).code, 0)
  const listed = await stowage(['ls', 'a'], env)
  assert.match(listed.stdout, /^id .*\na .* first\\u000asecond\\u001b\[31m\n$/)
  const asking = pipedCommand(t, url, ['get', '-', '-o', '-'])
  asking.stdin.end('\ufeffa\r\n')
  const [got, { code }] = await Promise.all([text(asking.stdout), exitOf(asking)])
  assert.deepEqual([code, (JSON.parse(got) as { id: string }).id], [0, 'a'])
})

test('a download with a cache reports missing objects, even the second time', async (t) => {
  const { url } = await served(t)
  const reference = (referencedId: string): object => ({ referencedId })
  const ids = ['a', 'b', 'c', 'd']
  const root = {
    id: 'root',
    at: [...ids, 'gone'].map(reference),
    __closure: Object.fromEntries([...ids, 'gone'].map((id) => [id, 1])),
  }
  const folder = folderWith(t, { 'model.json': JSON.stringify([...ids.map((id) => ({ id })), root]) })
  const env = { STOWAGE_URL: url, STOWAGE_PROJECT: 'demo' }
  assert.equal((await stowage(['upload', join(folder, 'model.json')], env)).code, 0)
  for (let round = 0; round < 2; round++) {
    const { code, stdout } = await stowage(
      ['download', 'root', '--cache', join(folder, 'cache'), '-o', join(folder, 'out.txt'), '--json', '--quiet'],
      env,
    )
    assert.deepEqual([code, (JSON.parse(stdout) as { missing: number }).missing], [3, 1], `round ${round}`)
  }
})
