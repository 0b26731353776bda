import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { archives } from '../../src/archive/server/archives.ts'
import { automation, type AutomationExtension } from '../../src/automation-server/index.ts'
import { upkeepSettingsOf } from '../../src/cli/server/upkeep-options.ts'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import {
  type Access,
  claimAuthorize,
  type CommonServiceOptions,
  createObjectService,
  openAccess,
  type ObjectService,
  type StorageBackend,
} from '../../src/index.ts'
import type { CollectionReport } from '../../src/object/collection.ts'
import { asGuarded } from '../../src/storage/guard.ts'
import { totalsKey } from '../../src/store/records/keys.ts'
import { EpochCounter } from '../../src/store/upkeep/epochs.ts'
import { uploadObjects } from '../automation-server/support.ts'
import { blocksOf } from '../docs/blocks.ts'
import { newDataFolder, stowage } from '../cli/command.ts'
import { parsed } from '../cli/serve-options.ts'
import { behindPort } from '../http/served.ts'

interface Opened {
  readonly service: ObjectService
  readonly extension: AutomationExtension
}

function open(backend: StorageBackend, options: Partial<CommonServiceOptions<unknown>> = {}): Opened {
  const extension = automation()
  const extensions = [extension, archives()]
  const service = createObjectService({ backend, access: openAccess(), extensions, ...options })
  return { service, extension }
}

/** A project with a version and objects that nothing leads to, and one without a version; three epochs have passed. */
async function fill({ service, extension }: Opened, backend: StorageBackend): Promise<void> {
  await uploadObjects(service, 'demo', [{ id: 'root' }])
  await uploadObjects(service, 'demo', [{ id: 'zombie', child: { referencedId: 'bone' } }, { id: 'bone' }])
  await uploadObjects(service, 'bare', [{ id: 'alone' }])
  const { models, versions } = extension.project('demo')
  const { id } = await models.create({ name: 'House' })
  await versions.create(id, { rootObjectId: 'root', message: '' })
  await passEpochs(backend, 3)
}

async function passEpochs(backend: StorageBackend, count: number): Promise<void> {
  const epochs = new EpochCounter(asGuarded(backend).records, REAL_ENVIRONMENT)
  for (let passed = 0; passed < count; passed++) await epochs.advance()
}

const YOUNG = ['--older-than', '0']

test('the commands list, collect and restore unreferenced objects, and merge packs, at a server', async (t) => {
  const backend = memoryBackend()
  const opened = open(backend)
  const { port } = await behindPort(t, opened.service)
  await fill(opened, backend)
  const env = { STOWAGE_URL: `http://127.0.0.1:${port}`, STOWAGE_PROJECT: 'demo' }
  const listed = await stowage(['ls', '--unreferenced'], env)
  assert.deepEqual(
    listed.stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/\s{2,}/))
      .map(([id, , age, state]) => `${id}: ${age}, ${state}`)
      .sort(),
    ['bone: 30 min, unreferenced', 'id: age, state', 'zombie: 30 min, unreferenced, top'],
  )
  const tops = await stowage(['ls', '--tops', '--json'], env)
  assert.deepEqual((JSON.parse(tops.stdout) as { readonly id: string }).id, 'zombie', tops.stderr)

  const dry = await stowage(['collect', '--dry-run', ...YOUNG], env)
  assert.match(dry.stdout, /^demo: would condemn 2 objects \(.*\): 2 never referenced\ndemo: would free nothing\n$/)
  const [byId, real] = [
    await stowage(['collect', 'root', '--dry-run'], env),
    await stowage(['collect', ...YOUNG, '--json'], env),
  ]
  assert.match(byId.stdout, /^demo: would condemn nothing\n1 object kept: .*\n {2}root\n$/)
  const report = JSON.parse(real.stdout) as { project: string; condemned: { objects: number } }
  assert.deepEqual([report.project, report.condemned.objects], ['demo', 2])
  const undone = await stowage(['collect', '--undo'], env)
  assert.match(undone.stdout, /^demo: restored 2 objects /)
  const merged = await stowage(['compact', '--all'], env)
  assert.match(merged.stdout, /^demo: 2 packs became 1, .*\ndemo: .* of replaced packs leave the disk within a day\n$/)
  const everywhere = await stowage(['collect', '--dry-run', '--url', env.STOWAGE_URL])
  assert.deepEqual(everywhere.code, 0, everywhere.stderr)
  assert.deepEqual(
    everywhere.stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split(': ')[0]),
    ['bare', 'demo', 'demo', 'demo'],
  )
  assert.match(everywhere.stdout, /^bare: not collected: it has neither a version nor a pin/)
  for (const { code, stderr } of [listed, dry, byId, real, undone, merged]) assert.deepEqual([code, stderr], [0, ''])
})

test('a collection takes its periods from the server, unless the command names others', async (t) => {
  const backend = memoryBackend()
  const options = parsed('--collect-older-than', '0', '--collect-undo-within', '60d')
  const opened = open(backend, upkeepSettingsOf(options))
  const { port } = await behindPort(t, opened.service)
  await fill(opened, backend)
  const env = { STOWAGE_URL: `http://127.0.0.1:${port}`, STOWAGE_PROJECT: 'demo' }
  const json = (text: string): Partial<CollectionReport> => JSON.parse(text) as Partial<CollectionReport>
  const byServer = json((await stowage(['collect', '--dry-run', '--json'], env)).stdout)
  assert.deepEqual([byServer.undoMs, byServer.condemned?.objects], [60 * 86_400_000, 2])
  const named = await stowage(['collect', '--dry-run', '--json', '--older-than', '1d', '--undo-within', '2d'], env)
  assert.deepEqual([json(named.stdout).undoMs, json(named.stdout).condemned?.objects], [2 * 86_400_000, 0])
  const kept = await stowage(['collect', '--dry-run', '--older-than', '1d'], env)
  assert.match(kept.stdout, /\ndemo: 2 objects \(.*\) kept: 1 d old or younger\n$/)
})

test('freed objects and copies of objects that were uploaded again are told apart', async (t) => {
  const backend = memoryBackend()
  const opened = open(backend)
  const { port } = await behindPort(t, opened.service)
  await fill(opened, backend)
  const env = { STOWAGE_URL: `http://127.0.0.1:${port}`, STOWAGE_PROJECT: 'demo' }
  const none = ['--older-than', '0', '--undo-within', '0']
  assert.match((await stowage(['collect', ...none], env)).stdout, /^demo: condemned 2 objects /)
  await passEpochs(backend, 3)
  await uploadObjects(opened.service, 'demo', [{ id: 'bone' }])
  const dry = await stowage(['collect', '--dry-run', ...none], env)
  assert.match(
    dry.stdout,
    /\ndemo: would free 1 object \(.*\): 1 never referenced\ndemo: would drop 1 replaced copy \(.*\): the objects were uploaded again and stay\n/,
  )
  const real = await stowage(['collect', ...none], env)
  assert.match(real.stdout, /\ndemo: freed 1 object \(.*\): 1 never .*\ndemo: dropped 1 replaced copy /)
})

test('the commands work on a data folder, for one project or all', async (t) => {
  const folder = newDataFolder(t)
  const backend = filesystemBackend({ path: folder })
  const opened = open(backend)
  await fill(opened, backend)
  await opened.service.close()
  const collected = await stowage(['collect', '--data', folder, ...YOUNG])
  assert.deepEqual(collected.code, 0, collected.stderr)
  assert.match(collected.stdout, /^bare: not collected: .*\ndemo: condemned 2 objects /)
  assert.match(
    (await stowage(['collect', '--data', folder, '--undo', '--project', 'demo'])).stdout,
    /restored 2 objects/,
  )
  assert.match((await stowage(['compact', '--data', folder])).stdout, /^bare: nothing to merge: 1 pack, /)
})

test('a project without objects fails nothing, and one that does not exist is told so', async (t) => {
  const folder = newDataFolder(t)
  const backend = filesystemBackend({ path: folder })
  const opened = open(backend)
  await fill(opened, backend)
  await opened.extension.project('empty').models.create({ name: 'House' })
  await opened.service.close()
  const data = ['--data', folder]
  for (const words of [['collect', '--dry-run'], ['collect', '--undo'], ['compact']]) {
    const all = await stowage([...words, ...data])
    assert.deepEqual([all.code, all.stderr], [0, ''], words.join(' '))
    assert.match(all.stdout, /^bare: .*\n(demo: .*\n)+empty: holds no objects\n$/)
    const one = await stowage([...words, ...data, '--project', 'empty'])
    assert.deepEqual([one.code, one.stdout, one.stderr], [0, 'empty: holds no objects\n', ''])
  }
  for (const words of [['collect'], ['collect', '--undo'], ['compact'], ['du']]) {
    const { code, stdout, stderr } = await stowage([...words, ...data, '--project', 'nosuch'])
    assert.deepEqual([code, stdout], [1, ''], words.join(' '))
    assert.match(stderr, /there is no project "nosuch": the service holds neither objects nor models of it\n$/)
  }
  const { code, stdout } = await stowage(['du', ...data, '--project', 'empty'])
  assert.equal(code, 0)
  assert.match(stdout, /^0 objects, 0 bytes of JSON/)
})

test('chosen objects that are not held are named, and the exit code tells scripts so', async (t) => {
  const backend = memoryBackend()
  const opened = open(backend)
  const { port } = await behindPort(t, opened.service)
  await fill(opened, backend)
  const env = { STOWAGE_URL: `http://127.0.0.1:${port}`, STOWAGE_PROJECT: 'demo' }
  const chosen = await stowage(['collect', 'zombie', 'nobody', 'nowhere'], env)
  assert.deepEqual([chosen.code, chosen.stderr], [3, ''])
  assert.match(chosen.stdout, /^demo: condemned 2 objects .*\n2 objects not held\n {2}nobody\n {2}nowhere\n$/)
  const none = ['--project', 'bare', '--undo-within', '0']
  assert.equal((await stowage(['collect', 'alone', '--project', 'bare'], env)).code, 0)
  await passEpochs(backend, 2)
  const freed = await stowage(['collect', ...none], env)
  assert.match(freed.stdout, /^bare: not collected: it has neither a version nor a pin; .*\nbare: freed 1 object /)
})

test('a project that fails does not stop the others, and neither do projects in which the token may not write', async (t) => {
  const backend = memoryBackend()
  const access: Access<unknown> = {
    authenticate: ({ headers }) => {
      const right = headers.get('authorization') === 'Bearer writer' ? 'write' : 'read'
      return { subject: right, projects: { bare: right, demo: right, other: 'read' } }
    },
    authorize: claimAuthorize,
  }
  const opened = open(backend, { access })
  const { port } = await behindPort(t, opened.service)
  await fill(opened, backend)
  await uploadObjects(opened.service, 'other', [{ id: 'root' }])
  const put = [{ key: totalsKey('bare', 1), value: Buffer.from('damaged') }]
  await asGuarded(backend).records.commit({ put })
  const env = { STOWAGE_URL: `http://127.0.0.1:${port}`, STOWAGE_TOKEN: 'writer' }
  const collected = await stowage(['collect', ...YOUNG], env)
  assert.deepEqual(collected.code, 1, collected.stdout)
  assert.match(collected.stdout, /^demo: condemned 2 objects .*\ndemo: freed nothing\n$/)
  assert.match(collected.stderr, /^stowage: the project "bare" failed: .*\n$/)
  const refused = await stowage(['collect', '--dry-run'], { ...env, STOWAGE_TOKEN: 'reader' })
  assert.deepEqual([refused.code, refused.stdout], [1, ''])
  assert.match(refused.stderr, /answered 403: .*; ask for a token that may do this/)
})

test('the commands of the page on what is kept work in their order', async (t) => {
  const backend = memoryBackend()
  const opened = open(backend)
  const { port } = await behindPort(t, opened.service)
  await fill(opened, backend)
  const env = { STOWAGE_URL: `http://127.0.0.1:${port}` }
  const lines = blocksOf('docs/lifecycle.md').flatMap(({ language, text }) =>
    language === 'sh' ? text.split('\n') : [],
  )
  assert.ok(lines.length >= 7)
  for (const line of lines) {
    const [command, ...words] = line.replace('$ROOT', 'zombie').split(' ')
    assert.equal(command, 'stowage')
    const { code, stderr } = await stowage(words, env)
    assert.deepEqual([code, stderr], [0, ''], line)
  }
})

test('damaged packs are named, and the exit code tells scripts so', async (t) => {
  const folder = newDataFolder(t)
  const backend = filesystemBackend({ path: folder })
  const opened = open(backend)
  // Random digits do not compress: a pack that is a file, and not inside its record.
  const digits = Array.from({ length: 4_000 }, () => randomUUID()).join('')
  await uploadObjects(opened.service, 'demo', [{ id: 'large', digits }])
  await fill(opened, backend)
  await opened.service.close()
  const [path] = readdirSync(join(folder, 'packs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => /^[0-9a-f]{32}\b/.test(basename(name)))
    .map((name) => join(folder, 'packs', name))
  const bytes = readFileSync(path)
  bytes[bytes.length - 100] ^= 1
  writeFileSync(path, bytes)

  const packId = basename(path).slice(0, 32)
  const merged = await stowage(['compact', '--all', '--data', folder, '--project', 'demo'])
  assert.deepEqual([merged.code, merged.stderr], [4, ''])
  assert.match(merged.stdout, new RegExp(`\ndemo: pack ${packId} is damaged, so it was not merged: .*\n`))
  assert.ok(
    merged.stdout.endsWith(`demo: to see what is affected, run "stowage check --data ${folder}"\n`),
    merged.stdout,
  )
  const collected = await stowage(['collect', '--data', folder, '--project', 'demo'])
  assert.deepEqual([collected.code, collected.stderr], [4, ''])
  assert.match(collected.stdout, /^demo: not collected: a pack of it cannot be read; "stowage check" says more\n$/)
})

test('an invalid command line is refused with its remedy', async () => {
  const env = { STOWAGE_URL: 'http://127.0.0.1:9' }
  const wrong: readonly (readonly [readonly string[], RegExp])[] = [
    [['collect', 'x'], /--project is missing/],
    [['collect', 'x', '--project', 'p', '--undo'], /--undo and --undo-within are for whole projects/],
    [['collect', '--undo', '--dry-run'], /cannot be used with option/],
    [['collect', '--older-than', '14'], /It must be 0, or a whole number and a unit/],
    [['ls', 'x', '--unreferenced'], /leave out <root>/],
  ]
  for (const [args, words] of wrong) {
    const { code, stderr } = await stowage(args, env)
    assert.equal(code, 2, args.join(' '))
    assert.match(stderr, words)
  }
})
