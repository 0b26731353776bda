import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { issueToken } from '../../src/access/token-store.ts'
import { type CopiedStorage, copyStorage, type OpenStorage } from '../../src/cli/client/copy-storage.ts'
import { copyProjects } from '../../src/archive/copy-projects.ts'
import type { ClientOptions } from '../../src/client/index.ts'
import { PROJECT, type Site, site } from '../archive/support.ts'
import { uploadObjects } from '../automation-server/support.ts'
import { refuseUnfinished } from '../../src/storage/maintenance-watch.ts'
import { faulty, noFault } from '../store/failures.ts'
import { assertSame, copySource, sealedStorage, served } from './copying.ts'

const OBJECTS = 60
const ROUNDS = 6

function copied(source: OpenStorage, target: OpenStorage, onProgress = () => {}): Promise<CopiedStorage> {
  return copyStorage(source, target, { drainMs: 0, retry: false, signal: new AbortController().signal, onProgress })
}

test('everything of a folder is in the copy, under the same ids, for the same tokens', async (t) => {
  const source = await copySource(t, OBJECTS)
  const target = sealedStorage(memoryBackend(), 'records of the target')
  const { projects, tokens } = await copied(source, target)
  assert.equal(tokens, 2)
  const counts = projects.map(({ project, objects, records }) => [
    project,
    objects.count > 0,
    Object.fromEntries(Object.entries(records).map(([kind, { count }]) => [kind, count])),
  ])
  assert.deepEqual(Object.fromEntries(counts.map(([project, ...rest]) => [project, rest])), {
    house: [true, { annotations: 1, artifact: 1, automation: 2, logs: 1, model: 2, pin: 2, run: 1, version: 2 }],
    'models only': [false, { model: 1 }],
    'objects only': [true, {}],
  })
  await assertSame(source, target)

  await assert.rejects(copied(source, target), {
    code: 'conflict',
    message: /^keys or tokens are already in records of the target; name an empty place/,
  })
})

test('a target that holds anything else is refused and left as it was', async (t) => {
  const source = await copySource(t, OBJECTS)
  const inUse = sealedStorage(memoryBackend(), 'a')
  await served(inUse, ({ project }) => project('other').upload([{ id: 'theirs' }]))
  await assert.rejects(copied(source, inUse), { code: 'conflict', message: /keys or tokens are already in a;/ })
  const { credentials } = sealedStorage(memoryBackend(), 'elsewhere')
  const withoutKeys = { ...inUse, credentials }
  await assert.rejects(copied(source, withoutKeys), { code: 'conflict', message: /data are already in a;/ })
  await served(inUse, async ({ project }) => {
    assert.deepEqual(await project('other').getText('theirs'), { id: 'theirs', json: '{"id":"theirs"}' })
  })
  const issued = sealedStorage(memoryBackend(), 'b')
  await issueToken(issued.credentials, { projects: new Map([['other', 'read']]), ttlSeconds: 60 })
  await assert.rejects(copied(source, issued), { code: 'conflict', message: /keys or tokens are already in b;/ })
  // An unfinished copy of another source.
  const begun = memoryBackend()
  const fault = { ...noFault(), mode: 'crash' as const, at: 60 }
  await assert.rejects(copied(source, { ...sealedStorage(begun, 'c'), backend: faulty(begun, fault) }))
  const other = { ...source, place: 'another folder' }
  await assert.rejects(copied(other, sealedStorage(begun, 'c')), {
    code: 'conflict',
    message: /a "stowage copy" of .*data, begun on .* has not finished: run it again first/,
  })
  await copied(source, sealedStorage(begun, 'c'))
  await assertSame(source, sealedStorage(begun, 'c'))
})

test('a copy that differs in the end fails, and says in what', async (t) => {
  const source = site(t)
  await source.project.upload([{ id: 'a' }, { id: 'b' }])
  await source.extension.project(PROJECT).models.create({ name: 'House' })
  const ways: readonly [(target: Site) => Promise<unknown>, RegExp][] = [
    [({ project }) => project.upload([{ id: 'c' }]), /the source has 2 of the kind "object", and the target 3/],
    [
      ({ extension }) => extension.project(PROJECT).models.create({ name: 'Shed' }),
      /the source has 1 of the kind "model", and the target 2/,
    ],
    [
      async ({ extension }) => {
        const { models } = extension.project(PROJECT)
        const [{ id }] = (await models.list()).items
        await models.change(id, { name: 'Barn' })
      },
      /1 of the kind "model" are in both, and not all are equal/,
    ],
    [({ service }) => uploadObjects(service, 'other', [{ id: 'x' }]), /the target has the project "other"/],
  ]
  for (const [change, message] of ways) {
    const target = site(t)
    let changing: Promise<unknown> = Promise.resolve()
    const to: ClientOptions = {
      ...target.address,
      fetch: async (url, init) => {
        await changing
        return target.service.fetch(new Request(url, init))
      },
    }
    // Somebody writes to the target between the copy and the comparison.
    const onProgress = (_project: string, at: unknown): void => {
      if (at === 'compared') changing = change(target)
    }
    const options = { signal: new AbortController().signal, onProgress }
    await assert.rejects(copyProjects(source.address, to, options), { code: 'corrupt_data', message })
  }
})

test('a copy that is cut off at any call of the target goes on, and is complete in the end', async (t) => {
  const source = await copySource(t, OBJECTS)
  const whole = noFault()
  const counted = { ...sealedStorage(memoryBackend(), 'target'), backend: faulty(memoryBackend(), whole) }
  await copied(source, counted)
  assert.ok(whole.calls > 100)
  for (let round = 0; round < ROUNDS; round++) {
    const inner = memoryBackend()
    const target = sealedStorage(inner, 'target')
    const at = Math.floor(((round + 0.5) * whole.calls) / ROUNDS)
    const fault = { ...noFault(), at, mode: 'crash' as const, isDone: round % 2 === 0 }
    await assert.rejects(copied(source, { ...target, backend: faulty(inner, fault) }), `cut off at call ${at}`)
    await copied(source, target)
    await refuseUnfinished(inner.records)
    await assertSame(source, target)
  }
})
