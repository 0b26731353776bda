import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { automation } from '../../src/automation-server/index.ts'
import { served } from '../http/served.ts'
import { newDataFolder, type Outcome, startServer, stowage } from '../cli/command.ts'

const FIRST = '[{"id":"leaf"},{"id":"top","walls":[{"referencedId":"leaf"}]}]'
const SECOND = '[{"id":"leaf"},{"id":"top 2","walls":[{"referencedId":"leaf"}]}]'

/** A folder with files of models. */
function filesOf(t: TestContext, texts: Readonly<Record<string, string>>): (name: string) => string {
  const folder = newDataFolder(t)
  mkdirSync(folder)
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(folder, name), text)
  return (name) => join(folder, name)
}

function jsonLines(outcome: Outcome): Record<string, unknown>[] {
  assert.equal(outcome.code, 0, outcome.stderr)
  return outcome.stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}

test('an upload creates the model and its versions, and the commands list them', async (t) => {
  const file = filesOf(t, { 'first.json': FIRST, 'second.json': SECOND })
  const { url } = await served(t, { extensions: [automation()] })
  const env = { STOWAGE_URL: url, STOWAGE_PROJECT: 'demo' }
  const first = await stowage(['upload', file('first.json'), '--model', 'Town hall', '--message', 'As planned'], env)
  assert.deepEqual([first.code, first.stdout], [0, 'top\n'], first.stderr)
  assert.match(first.stderr, /stowage: version [0-9a-f]{32} of "Town hall"\n/)
  const [second] = jsonLines(
    await stowage(['upload', file('second.json'), '--model', 'Town hall', '--message', 'As built', '--json'], env),
  )
  const [models, versions, plain] = await Promise.all([
    stowage(['model', 'list', '--json'], env),
    stowage(['version', 'list', 'Town hall', '--json'], env),
    stowage(['version', 'list', 'Town hall'], env),
  ])
  const [model] = jsonLines(models)
  assert.deepEqual([model.name, model.versionCount, model.id], ['Town hall', 2, second.modelId])
  assert.deepEqual(
    jsonLines(versions).map(({ id, rootObjectId, message, source }) => [
      id === second.versionId,
      rootObjectId,
      message,
      source,
    ]),
    [
      [true, 'top 2', 'As built', 'stowage'],
      [false, 'top', 'As planned', 'stowage'],
    ],
  )
  assert.match(plain.stdout, /^[0-9a-f]{32} {2}\S+Z {2}top 2 {2}As built\n[0-9a-f]{32} {2}\S+Z {2}top {2}As planned\n$/)
  const made = await stowage(['version', 'create', String(model.id), 'top', '--message', 'Back'], env)
  assert.match(made.stdout, /^[0-9a-f]{32}\n$/, made.stderr)
  const lacking = await stowage(['version', 'create', 'Town hall', 'nothing', '--json'], env)
  assert.equal(lacking.code, 1)
  assert.match(lacking.stderr, /answered 409: .*nothing/)
})

test('a file with several roots uploads, and the named root becomes a version', async (t) => {
  const file = filesOf(t, { 'two.json': '[{"id":"a"},{"id":"b"}]' })
  const { url } = await served(t, { extensions: [automation()] })
  const env = { STOWAGE_URL: url, STOWAGE_PROJECT: 'demo' }
  const unclear = await stowage(['upload', file('two.json'), '--model', 'Both'], env)
  assert.deepEqual([unclear.code, unclear.stdout], [1, 'a\nb\n'])
  assert.match(unclear.stderr, /the file has 2 roots, and a version has one: name it with --root/)
  assert.deepEqual(jsonLines(await stowage(['model', 'list', '--json'], env)), [], 'no model is made in vain')
  const [made] = jsonLines(
    await stowage(['upload', file('two.json'), '--model', 'Both', '--root', 'b', '--no-roots', '--json'], env),
  )
  assert.match(String(made.versionId), /^[0-9a-f]{32}$/)
  for (const wrong of [
    ['--message', 'x'],
    ['--root', 'a'],
    ['--model', 'Both', '--no-roots'],
  ])
    assert.equal((await stowage(['upload', file('two.json'), ...wrong], env)).code, 2, wrong.join(' '))
  const without = await served(t)
  const refused = await stowage(['model', 'list', '--project', 'demo', '--url', without.url])
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /answered 404: .*; does --url name the service/)
})

test('commands work on models of a local folder', async (t) => {
  const data = newDataFolder(t)
  const server = await startServer(t, ['--data', data])
  const { stdout } = await server.stop()
  assert.match(
    stdout,
    /^stowage serves .* on http:.*\npages for people: http:\/\/127\.0\.0\.1:\d+\/web\nto get a token: stowage token --data \S+ --project demo --access write\n$/,
  )
  const { stdout: id, stderr } = await stowage(['model', 'create', 'Town hall', '--data', data, '--project', 'demo'])
  assert.match(id, /^[0-9a-f]{32}\n$/, stderr)
  const { stdout: list } = await stowage(['model', 'list', '--data', data, '--project', 'demo'])
  assert.equal(list, `${id.trim()}       0  Town hall\n`)
})
