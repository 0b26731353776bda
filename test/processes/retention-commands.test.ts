import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { automation } from '../../src/automation-server/index.ts'
import { createObjectService, openAccess } from '../../src/index.ts'
import { uploadObjects } from '../automation-server/support.ts'
import { newDataFolder, stowage } from '../cli/command.ts'
import { behindPort } from '../http/served.ts'

/** A server whose model "House" has three versions, the newest first. */
async function served(t: TestContext) {
  const extension = automation()
  const service = createObjectService({ backend: memoryBackend(), access: openAccess(), extensions: [extension] })
  const { port } = await behindPort(t, service)
  const { models, versions } = extension.project('demo')
  const model = await models.create({ name: 'House' })
  const ids: string[] = []
  for (const rootObjectId of ['first', 'second', 'third']) {
    await uploadObjects(service, 'demo', [{ id: rootObjectId }])
    ids.unshift((await versions.create(model.id, { rootObjectId, message: rootObjectId })).id)
  }
  const env = { STOWAGE_URL: `http://127.0.0.1:${port}`, STOWAGE_PROJECT: 'demo' }
  const ruleNow = async (): Promise<unknown> => (await models.get(model.id)).retention
  return { env, ids, ruleNow }
}

test('a retention rule of a model is set, shown, applied and removed', async (t) => {
  const { env, ids, ruleNow } = await served(t)
  const set = await stowage(['model', 'retention', 'House', '--keep-last', '1', '--keep-daily', '30'], env)
  assert.deepEqual([set.code, set.stdout], [0, "keeps the last 1 version, each day's last version for 30 days\n"])
  assert.match(set.stderr, /^stowage: applied once a day; "stowage version prune \w+ --dry-run" shows/)
  assert.deepEqual(await ruleNow(), { keepLastCount: 1, keepDailyDays: 30 })

  const replaced = await stowage(['model', 'retention', 'House', '--keep-last', '1', '--json'], env)
  assert.deepEqual((JSON.parse(replaced.stdout) as { retention: unknown }).retention, { keepLastCount: 1 })
  const kept = await stowage(['version', 'keep', 'House', ids[1]], env)
  assert.deepEqual([kept.code, kept.stderr], [0, `stowage: no rule deletes version ${ids[1]}\n`])
  const pruned = await stowage(['version', 'prune', 'House'], env)
  assert.match(pruned.stdout, new RegExp(`^${ids[2]}  \\S+  first\n$`), 'neither the latest nor the kept one')
  const listed = await stowage(['version', 'list', 'House', '--deleted'], env)
  assert.deepEqual(
    listed.stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split('  ').slice(3)),
    [['third'], ['second', '(kept)'], ['first', listed.stdout.slice(listed.stdout.lastIndexOf('(')).trimEnd()]],
  )

  const unkept = await stowage(['version', 'keep', 'House', ids[1], '--undo', '--json'], env)
  assert.equal((JSON.parse(unkept.stdout) as { kept: unknown }).kept, false)
  const removed = await stowage(['model', 'retention', 'House', '--none'], env)
  assert.deepEqual([removed.code, removed.stdout], [0, 'no rule: every version is kept\n'])
  assert.equal(await ruleNow(), null)
  const without = await stowage(['version', 'prune', 'House'], env)
  assert.equal(without.code, 2)
  assert.match(without.stderr, /the model "House" has no retention rule; give one, such as --keep-last 20, or set/)
})

test('lists of pins and sizes show the names and reasons that people gave', async (t) => {
  const { env } = await served(t)
  const added = await stowage(['pin', 'add', 'first', '--name', 'Permit', '--reason', 'Submitted'], env)
  assert.equal(added.code, 0, added.stderr)
  const pinId = added.stdout.trimEnd()
  assert.equal((await stowage(['pin', 'list'], env)).stdout.split(/\s+/).slice(3).join(' '), 'first Permit Submitted ')
  assert.equal((await stowage(['model', 'delete', 'House'], env)).code, 0)
  const { stdout } = await stowage(['du'], env)
  assert.match(stdout, /^3 objects, .* of JSON\n.* on disk in packs, 0 bytes in replaced packs, 0 bytes in plans\n/)
  assert.match(stdout, /  House  \(deleted\)\n/)
  assert.match(stdout, new RegExp(`\n${pinId} .*  pin of first  Permit\n`))
})

test('the server computes the end of a pin that is given as a duration', async (t) => {
  const { env } = await served(t)
  const { stdout } = await stowage(['pin', 'add', 'first', '--for', '90d', '--json'], env)
  const { createdAt, endsAt } = JSON.parse(stdout) as { readonly createdAt: string; readonly endsAt: string }
  assert.equal(Date.parse(endsAt) - Date.parse(createdAt), 90 * 86_400_000)
})

test('an invalid command line about what is kept is refused with its remedy', async (t) => {
  const env = { STOWAGE_URL: 'http://127.0.0.1:9', STOWAGE_PROJECT: 'demo' }
  const wrong: readonly (readonly [readonly string[], RegExp])[] = [
    [['model', 'retention', 'House', '--none', '--keep-all', '3'], /cannot be used with option/],
    [['model', 'retention', 'House', '--keep-daily', '30d'], /a whole number of 1 or more/],
    [['pin', 'add', 'first', '--for', '100000000d'], /'100000000d' is invalid\. It must be 366000d or less\./],
    [['import', join(newDataFolder(t), 'absent.tar')], /there is no file "/],
  ]
  for (const [args, words] of wrong) {
    const { code, stderr } = await stowage(args, env)
    assert.equal(code, 2, args.join(' '))
    assert.match(stderr, words)
  }
})
