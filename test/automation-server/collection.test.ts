import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { createClient, type Project } from '../../src/client/index.ts'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import { type Access, claimAuthorize, type ServiceEvent } from '../../src/index.ts'
import { asGuarded } from '../../src/storage/guard.ts'
import { EPOCH_MS, EpochCounter } from '../../src/store/upkeep/epochs.ts'
import { automated, type Fixture, type FixtureOptions, uploadObjects, withVersion } from './support.ts'

const GRACE = { olderThanMs: 2 * EPOCH_MS, undoMs: 2 * EPOCH_MS }

interface Collecting extends Fixture {
  readonly project: Project
  readonly events: readonly ServiceEvent[]
  readonly pass: (epochs: number) => Promise<void>
}

/** A project with a version of two objects, and an upload of three that nothing leads to. */
async function collecting(t: TestContext, options: FixtureOptions = {}): Promise<Collecting> {
  const backend = memoryBackend()
  const events: ServiceEvent[] = []
  const service = { onEvent: (event: ServiceEvent) => void events.push(event), ...options.service }
  const fixture = automated(t, { backend, ...options, service })
  await withVersion(fixture)
  await uploadObjects(fixture.service, 'p', [
    { id: 'zombie', children: [{ referencedId: 'bone' }, { referencedId: 'leaf' }] },
    { id: 'bone' },
    { id: 'other' },
  ])
  const counter = new EpochCounter(asGuarded(backend).records, REAL_ENVIRONMENT)
  const pass = async (epochs: number): Promise<void> => {
    for (let i = 0; i < epochs; i++) await counter.advance()
  }
  return { ...fixture, project: clientOf(fixture), events, pass }
}

function clientOf({ service }: Fixture, token?: string): Project {
  return createClient({
    url: 'http://in.process',
    token,
    retry: false,
    fetch: (url, init) => service.fetch(new Request(url, init)),
  }).project('p')
}

async function idsOf(project: Project, tops = false): Promise<readonly string[]> {
  return (await project.upkeep.unreferenced({ tops })).items.map(({ id }) => id).sort()
}

test('a collection condemns the objects of its dry run, an undo restores them, and a later one frees them', async (t) => {
  const { project, pass, events } = await collecting(t)
  assert.equal((await project.upkeep.collect({ ...GRACE })).condemned.objects, 0, 'everything is young')
  await pass(3)
  const dry = await project.upkeep.collect({ ...GRACE, dryRun: true })
  assert.deepEqual([dry.dryRun, dry.skipped, dry.held.objects, dry.condemned.objects], [true, null, 5, 3])
  assert.deepEqual(await idsOf(project), ['bone', 'other', 'zombie'])
  assert.equal((await project.has(['zombie'])).held.size, 1, 'a dry run changes nothing')
  const real = await project.upkeep.collect({ ...GRACE })
  assert.deepEqual({ ...real, dryRun: true }, dry)
  assert.equal((await project.has(['zombie'])).held.size, 0)
  assert.equal((await project.upkeep.restoreCollected()).objects, 3)
  assert.equal((await project.has(['zombie'])).held.size, 1, 'restored')
  await pass(3)
  await project.upkeep.collect({ ...GRACE })
  await pass(3)
  const last = await project.upkeep.collect({ ...GRACE })
  assert.equal(last.freed.objects, 3)
  assert.equal(last.freed.jsonBytes, dry.condemned.jsonBytes)
  assert.equal(await project.get('zombie'), undefined)
  assert.equal((await project.graphInfo('root'))?.objects, 2, 'the version is whole')
  assert.deepEqual(
    events.flatMap((event) =>
      event.type === 'collection' ? [[event.condemnedObjects, event.restoredObjects, event.freedObjects]] : [],
    ),
    [
      [3, 0, 0],
      [0, 3, 0],
      [3, 0, 0],
      [0, 0, 3],
    ],
  )
})

test('a project with neither versions nor pins is not collected, but chosen objects of it are', async (t) => {
  const { service, project, pass } = await collecting(t)
  const bare = createClient({
    url: 'http://in.process',
    token: undefined,
    fetch: (url, init) => service.fetch(new Request(url, init)),
  }).project('bare')
  await uploadObjects(service, 'bare', [
    { id: 'a', children: [{ referencedId: 'b' }, { referencedId: 's' }] },
    { id: 'b' },
    { id: 'c', children: [{ referencedId: 's' }] },
    { id: 's' },
  ])
  await pass(3)
  assert.equal((await bare.upkeep.collect({ ...GRACE })).skipped, 'noRoots')
  assert.deepEqual(await idsOf(bare), ['a', 'b', 'c', 's'])
  assert.deepEqual(await idsOf(bare, true), ['a', 'c'], 'the tops')
  const dry = await bare.upkeep.collectObjects(['a', 'nobody'], { dryRun: true })
  assert.deepEqual([dry.condemned.objects, dry.missing, dry.missingIds, dry.kept], [2, 1, ['nobody'], 0])
  const chosen = await bare.upkeep.collectObjects(['a', 's'])
  assert.deepEqual([chosen.condemned.objects, chosen.keptIds], [2, ['s']], 'another object leads to s')
  assert.deepEqual([...(await bare.has(['a', 'b', 'c', 's'])).held].sort(), ['c', 's'])
  assert.deepEqual((await bare.upkeep.unreferenced()).items.map(({ id, state }) => `${id} ${state}`).sort(), [
    'a condemned',
    'b condemned',
    'c unreferenced',
    's unreferenced',
  ])
  const kept = await project.upkeep.collectObjects(['root'])
  assert.deepEqual([kept.condemned.objects, kept.keptIds], [0, ['root']], 'a version leads to it')
})

test('the list of unreferenced objects comes in parts, with ages in the time of the store', async (t) => {
  const { project, pass } = await collecting(t)
  await pass(4)
  const ids: string[] = []
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page: Awaited<ReturnType<typeof project.upkeep.unreferenced>> = await project.upkeep.unreferenced({
      limit: 1,
      ...(cursor === undefined ? {} : { cursor }),
    })
    for (const { id, ageMs, jsonBytes } of page.items) {
      ids.push(id)
      assert.ok(ageMs >= 4 * EPOCH_MS && jsonBytes > 10, `${id}: ${ageMs}`)
    }
    cursor = page.cursor
  }
  assert.deepEqual(ids.sort(), ['bone', 'other', 'zombie'])
  await assert.rejects(project.upkeep.unreferenced({ cursor: 'x' }), { code: 'invalid_request' })
})

const ACCESS: Access<unknown> = {
  authenticate: ({ headers }) => {
    const [, right] = /^Bearer (read|write)$/.exec(headers.get('authorization') ?? '') ?? []
    return right === undefined ? undefined : { subject: right, projects: { '*': right as 'read' | 'write' } }
  },
  authorize: claimAuthorize,
}

test('listing needs the right to read, everything else the right to write', async (t) => {
  const fixture = await collecting(t, { service: { access: ACCESS } })
  const [reader, writer] = [clientOf(fixture, 'read'), clientOf(fixture, 'write')]
  assert.equal((await reader.upkeep.unreferenced()).items.length, 3)
  const calls: readonly ((project: Project) => Promise<unknown>)[] = [
    ({ upkeep }) => upkeep.collect({ dryRun: true }),
    ({ upkeep }) => upkeep.restoreCollected(),
    ({ upkeep }) => upkeep.collectObjects(['zombie'], { dryRun: true }),
  ]
  for (const call of calls) {
    await assert.rejects(call(reader), { code: 'forbidden', statusCode: 403 })
    await call(writer)
  }
})

test('invalid requests are refused before any work', async (t) => {
  const { project, ask } = await collecting(t)
  await assert.rejects(project.upkeep.collect({ olderThanMs: -1 }), { code: 'invalid_request' })
  await assert.rejects(project.upkeep.collectObjects([]), { code: 'invalid_request' })
  assert.equal((await ask('POST', 'p/collect', { everything: true })).status, 400)
  for (const path of ['collect', 'restore-collected', 'compact'])
    assert.equal((await ask('POST', `nobody/${path}`)).status, 404, path)
  assert.equal((await ask('GET', 'nobody/unreferenced')).status, 404)
})

test('all projects are collected one after the other, and one that fails does not stop the others', async (t) => {
  const { service, pass } = await collecting(t)
  await uploadObjects(service, 'q', [{ id: 'q' }])
  await pass(3)
  const seen: string[] = []
  const totals = await service.collect({ ...GRACE, onProject: (id, { skipped }) => seen.push(`${id} ${skipped}`) })
  assert.deepEqual(seen.sort(), ['p null', 'q noRoots'])
  assert.deepEqual([totals.projects, totals.skipped, totals.condemned.objects], [1, 1, 3])
  assert.equal(totals.condemned.byCause.neverReferenced.objects, 3)
  assert.equal((await service.project('p').restoreCollected()).objects, 3)
})

test('the periods of the service hold for every collection that names none, and it collects by itself only if told to', async (t) => {
  const periods = { olderThanMs: EPOCH_MS, undoMs: 4 * EPOCH_MS }
  const { service, project, pass } = await collecting(t, { service: { collection: periods } })
  await pass(2)
  const { condemned, olderThanMs, undoMs } = await project.upkeep.collect()
  assert.deepEqual([condemned.objects, { olderThanMs, undoMs }], [3, periods])
  await pass(4)
  for (const collect of [() => project.upkeep.collect(), () => service.project('p').collect(), () => service.collect()])
    assert.equal((await collect()).freed.objects, 0, 'it can still be restored')
  const sooner = await project.upkeep.collect({ undoMs: 1, dryRun: true })
  assert.deepEqual([sooner.freed.objects, sooner.undoMs], [3, EPOCH_MS], 'a request says otherwise')
  await pass(1)
  assert.equal((await service.collect()).freed.objects, 3)
})
