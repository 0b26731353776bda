import type { ProjectQuota } from '../object/graph-store.ts'
import { amountOf } from './amounts.ts'
import { conflicting, planModel, type PlannedModel, type PlannedObject, type PlannedVersion } from './models.ts'
import type { Operation, PlannedUpload, Unplaced } from './operations.ts'
import type { Random } from './random.ts'
import { planStory } from './stories.ts'
import { planLateStory } from './stories-late.ts'
import { planRacedStory } from './stories-raced.ts'
import { planSpaceStory } from './stories-space.ts'
import { planVersionsStory } from './stories-versions.ts'

/** What comes last comes so many places behind the last version. */
const PLACES_BEHIND = 20
/** The share of runs that tell a story and nothing else, and of the others that tell one besides. */
const STORY_ALONE_SHARE = 0.15
const STORY_SHARE = 0.3
/** The share of stories by themselves in which nothing else goes wrong. */
const UNDISTURBED_SHARE = 0.7
/** The share of runs that tell a story of quotas or chosen objects, and of the others that have either. */
const SPACE_STORY_SHARE = 0.06
/** The share of runs of several servers in which one is late. */
const LATE_STORY_SHARE = 0.05
/** The share of runs of several servers in which two work at once. */
const RACED_STORY_SHARE = 0.1
/** The share of runs that tell of the versions of a long object. */
const VERSIONS_STORY_SHARE = 0.03
const QUOTA_SHARE = 0.1
const CHOICES_SHARE = 0.12

/** Who does what in one run. */
interface Workload {
  readonly models: readonly PlannedModel[]
  readonly operations: readonly Operation[]
  /** What projects may hold. */
  readonly quotas: ReadonlyMap<string, ProjectQuota>
  /** Nothing goes wrong but what the operations themselves bring about. */
  readonly isUndisturbed: boolean
}

/** The actions of clients in one run. */
export function planOperations(random: Random, servers: number): Workload {
  if (servers > 1 && random.fork('late').chance(LATE_STORY_SHARE)) return storyAlone(random, servers, planLateStory)
  if (random.fork('space').chance(SPACE_STORY_SHARE)) return storyAlone(random, servers, planSpaceStory)
  if (random.fork('alone').chance(STORY_ALONE_SHARE)) return storyAlone(random, servers, planStory)
  if (servers > 1 && random.fork('raced').chance(RACED_STORY_SHARE)) return storyAlone(random, servers, planRacedStory)
  if (random.fork('versions').chance(VERSIONS_STORY_SHARE)) return storyAlone(random, servers, planVersionsStory)
  const projects = random.chance(0.8) ? ['p'] : ['p', 'q']
  const models = Array.from({ length: random.between(1, 3) }, (_, at) =>
    planModel(random.fork(`model ${at}`), random.pick(projects), `m${at}`),
  )
  const placed = random.shuffled(models).flatMap((model, at) => storyOf(random, model, at * random.below(6)))
  const last = Math.max(...placed.map(({ place }) => place))
  const anywhere = (): number => random.below(last + 2)
  for (let left = random.between(0, 5); left > 0; left--)
    placed.push({ place: anywhere(), operation: readOf(random, random.pick(models)) })
  if (random.chance(0.4))
    for (let left = random.between(1, 3); left > 0; left--)
      placed.push({ place: anywhere(), operation: { kind: 'restart', projectId: projects[0] } })
  if (random.chance(0.3))
    for (let left = random.between(1, 2); left > 0; left--) placed.push(...removalOf(random, models, anywhere()))
  if (random.chance(0.4))
    for (let left = random.between(1, 4); left > 0; left--)
      placed.push({ place: anywhere(), operation: keepingOf(random, random.pick(models)) })
  if (random.chance(0.25))
    for (let left = random.between(1, 2); left > 0; left--)
      placed.push({ place: anywhere(), operation: countOf(random, random.pick(models)) })
  if (random.chance(0.35)) placed.push(...compactionsOf(random, models, last))
  if (random.chance(0.35)) placed.push(...collectionsOf(random, models, last))
  if (random.fork('choices').chance(CHOICES_SHARE)) placed.push(...choicesOf(random.fork('choice'), models, last))
  if (random.chance(0.08)) placed.push({ place: anywhere(), operation: maintenanceOf(random, projects[0]) })
  if (random.chance(STORY_SHARE)) {
    const { model, steps, isLast } = planStory(random.fork('story'), random.pick(projects), servers)
    const first = isLast ? last + PLACES_BEHIND : anywhere() + 0.5
    placed.push(...steps.map((step, at) => ({ ...step, place: first + at / 1_000 })))
    models.push(model)
  }
  const unplaced = placed.sort((one, other) => one.place - other.place)
  const quotas = quotasOf(random.fork('quotas'), models)
  const operations = timed(random, unplaced, servers)
  return { models, operations: withLengths(random.fork('lengths'), operations, quotas), quotas, isUndisturbed: false }
}

/** A story by itself, so that nothing else keeps it from what it leads to. */
function storyAlone(random: Random, servers: number, plan: typeof planStory): Workload {
  const { model, steps, quota } = plan(random.fork('story'), 'p', servers)
  const isUndisturbed = random.chance(UNDISTURBED_SHARE)
  const quotas = new Map(quota === undefined ? [] : [[model.projectId, quota]])
  return { models: [model], operations: timed(random, steps, servers), quotas, isUndisturbed }
}

/** In some runs one project may hold less than what comes, or little more. */
function quotasOf(random: Random, models: readonly PlannedModel[]): ReadonlyMap<string, ProjectQuota> {
  if (!random.chance(QUOTA_SHARE)) return new Map()
  const { projectId } = random.pick(models)
  const versions = models.flatMap((model) => (model.projectId === projectId ? model.versions : []))
  const texts = new Map(versions.flatMap(({ objects }) => objects.map(({ id, json }) => [id, json])))
  const { objects, jsonBytes } = amountOf(texts)
  const part = (all: number): number => Math.ceil((all * random.between(3, 13)) / 10)
  const counts = random.pick(['objects', 'bytes', 'both'])
  const quota = {
    ...(counts === 'bytes' ? {} : { objectsMax: part(objects) }),
    ...(counts === 'objects' ? {} : { jsonBytesMax: part(jsonBytes) }),
  }
  return new Map([[projectId, quota]])
}

/** Half of the uploads to a project with a quota say how long they are. */
function withLengths(
  random: Random,
  operations: readonly Operation[],
  quotas: Workload['quotas'],
): readonly Operation[] {
  return operations.map((operation) =>
    operation.kind === 'upload' && quotas.has(operation.projectId) && random.chance(0.5)
      ? { ...operation, isLengthKnown: true }
      : operation,
  )
}

/** The operations in their order, each in its time and at its server. */
function timed(random: Random, unplaced: readonly Omit<Placed, 'place'>[], servers: number): readonly Operation[] {
  const everyMs = random.pick([2, 10, 30, 100, 400])
  let atMs = 0
  return unplaced.map(({ operation, gapMs, server }, index): Operation => {
    atMs += gapMs ?? random.below(everyMs * 2)
    return { ...operation, index, atMs, server: server ?? random.below(servers) }
  })
}

interface Placed {
  readonly place: number
  readonly operation: Unplaced
  /** How long after the operation before it begins; drawn by default. */
  readonly gapMs?: number
  /** Drawn by default. */
  readonly server?: number | undefined
}

/**
 * The versions of a model come one after the other, about; somebody reads each while it comes, and some read it again
 * later.
 */
function storyOf(random: Random, model: PlannedModel, start: number): Placed[] {
  const placed: Placed[] = []
  let place = start
  for (const [at, version] of model.versions.entries()) {
    for (const operation of uploadsOf(random, model, version, at)) placed.push({ place: place++, operation })
    for (let left = random.between(0, 4); left > 0; left--)
      placed.push({ place: place + random.between(-3, 4), operation: downloadOf(random, model, at) })
    place += random.below(3)
  }
  return placed
}

/** A project is removed; often some of it comes again, and is read. */
function removalOf(random: Random, models: readonly PlannedModel[], place: number): Placed[] {
  const model = random.pick(models)
  const at = random.below(model.versions.length)
  const removal: Placed = { place, operation: { kind: 'remove', projectId: model.projectId } }
  const again = random.chance(0.3) ? [] : uploadsOf(random, model, model.versions[at], at)
  const read = (): Placed => ({ place: place + random.between(-1, 4), operation: downloadOf(random, model, at) })
  return [
    removal,
    ...again.map((operation) => ({ place: place + random.below(3), operation })),
    ...Array.from({ length: random.between(0, 3) }, read),
  ]
}

function uploadsOf(random: Random, model: PlannedModel, version: PlannedVersion, at: number): Unplaced[] {
  const { projectId, versions } = model
  const uploads: Unplaced[] = []
  const upload = (objects: readonly PlannedObject[], more: Partial<PlannedUpload> = {}): void =>
    void uploads.push({
      kind: 'upload',
      projectId,
      objects,
      isBroken: false,
      isZipped: random.chance(0.3),
      asks: false,
      requests: random.chance(0.15) ? random.between(2, 4) : 1,
      ...more,
    })
  const parts = random.chance(0.5) ? 1 : random.between(2, 3)
  for (let part = 0; part < parts; part++) {
    const objects = version.objects.filter((_, place) => place % parts === part)
    if (objects.length === 0 || random.chance(0.05)) continue
    const olderRootId = at > 0 && random.chance(0.3) ? versions[at - 1].rootId : undefined
    upload(objects, { asks: random.chance(0.4), olderRootId })
  }
  if (random.chance(0.25)) upload(version.objects.filter(() => random.chance(0.6)))
  if (random.chance(0.25))
    upload(version.objects.filter(() => random.chance(0.4)).map((object) => conflicting(object, `other ${at}`)))
  if (random.chance(0.15))
    upload(
      version.objects.map((object) => ({
        ...object,
        id: `${object.id}-broken`,
        json: object.json.replace(object.id, `${object.id}-broken`),
      })),
      { isBroken: true },
    )
  return random.shuffled(uploads.filter((one) => one.kind === 'upload' && one.objects.length > 0))
}

function readOf(random: Random, model: PlannedModel): Unplaced {
  const { projectId, versions } = model
  const at = random.below(versions.length)
  const ids = versions[at].objects.map(({ id }) => id)
  const draw = random.below(6)
  if (draw < 2) return downloadOf(random, model, at)
  if (draw < 3) return { kind: 'single', projectId, ids: [versions[at].rootId] }
  return { kind: draw < 4 ? 'list' : 'has', projectId, ids: ids.filter(() => random.chance(0.5)) }
}

function keepingOf(random: Random, { projectId, versions }: PlannedModel): Unplaced {
  if (random.chance(0.3)) return { kind: 'unpin', projectId, draw: random.below(1_000) }
  return { kind: 'pin', projectId, rootId: random.pick(versions).rootId }
}

function countOf(random: Random, { projectId }: PlannedModel): Unplaced {
  if (random.chance(0.3)) return { kind: 'usage', projectId }
  return { kind: 'export', projectId, pageBytes: random.pick([1, 500, 100_000]) }
}

/** Roots are kept, and the rest is condemned and freed as time passes; now and then that is undone. */
function collectionsOf(random: Random, models: readonly PlannedModel[], last: number): Placed[] {
  const model = random.pick(models)
  const { projectId, versions } = model
  const placed: Placed[] = []
  let place = random.below(last + 2)
  const add = (operation: Unplaced): void => void placed.push({ place, operation })
  const at = random.below(versions.length)
  if (random.chance(0.8)) add({ kind: 'pin', projectId, rootId: versions[at].rootId })
  // An upload that leaves out what is old: it is young, and holds that.
  if (random.chance(0.4)) {
    place += 0.1
    const { objects } = versions[(at + 1) % versions.length]
    add({ kind: 'age', projectId, epochs: 4 })
    place += 0.1
    const form = { isBroken: false, isZipped: false, asks: true, requests: 1 }
    add({ kind: 'upload', projectId, objects: objects.slice(objects.length >> 1), ...form })
    place += 0.5
    add({ kind: 'collect', projectId, graceEpochs: random.between(2, 3), undoEpochs: 1, isDryRun: false })
    place += 0.5
    add({ kind: 'has', projectId, ids: objects.map(({ id }) => id) })
  }
  for (let left = random.between(1, 4); left > 0; left--) {
    place += random.chance(0.5) ? 0.1 : random.between(0, 3)
    if (random.chance(0.8)) add({ kind: 'age', projectId, epochs: random.pick([1, 2, 4, 150]) })
    const isDryRun = random.chance(0.15)
    add({ kind: 'collect', projectId, graceEpochs: random.between(1, 3), undoEpochs: random.between(1, 2), isDryRun })
    if (random.chance(0.2)) add({ kind: 'restore', projectId })
    if (random.chance(0.3)) add(keepingOf(random, model))
    for (let reads = random.below(3); reads > 0; reads--) add(readOf(random, model))
    if (random.chance(0.4)) for (const upload of uploadsOf(random, model, random.pick(versions), 0)) add(upload)
  }
  return placed
}

/** Somebody lists what no root leads to, and condemns some of it; now and then that comes again, or is freed. */
function choicesOf(random: Random, models: readonly PlannedModel[], last: number): Placed[] {
  const model = random.pick(models)
  const { projectId, versions } = model
  const placed: Placed[] = []
  let place = random.below(last + 2)
  const add = (operation: Unplaced): void => void placed.push({ place, operation })
  if (random.chance(0.5)) add({ kind: 'pin', projectId, rootId: random.pick(versions).rootId })
  for (let left = random.between(1, 3); left > 0; left--) {
    place += random.chance(0.5) ? 0.1 : random.between(0, 3)
    if (random.chance(0.7)) add({ kind: 'age', projectId, epochs: random.pick([1, 2, 4]) })
    const { objects } = random.pick(versions)
    const known = objects.map(({ id }) => id)
    add(choiceOf(random, projectId, random.chance(0.5) ? known.filter(() => random.chance(0.2)).slice(0, 900) : []))
    if (random.chance(0.5)) add({ kind: 'has', projectId, ids: known })
    if (random.chance(0.2)) add({ kind: 'restore', projectId })
    if (random.chance(0.4)) for (const upload of uploadsOf(random, model, random.pick(versions), 0)) add(upload)
    if (random.chance(0.2)) add(keepingOf(random, model))
    if (random.chance(0.4)) {
      place += 0.1
      add({ kind: 'age', projectId, epochs: random.pick([2, 4, 150]) })
      add({ kind: 'collect', projectId, graceEpochs: random.between(1, 8), undoEpochs: 1, isDryRun: false })
      add({ kind: 'list', projectId, ids: known })
    }
  }
  return placed
}

function choiceOf(random: Random, projectId: string, ids: readonly string[]): Unplaced {
  return {
    kind: 'choose',
    projectId,
    ids,
    share: random.pick([0, 0.3, 1]),
    draw: random.below(1_000_000),
    pageObjects: random.pick([2, 1_000]),
    topsOnly: random.chance(0.4),
    graceEpochs: random.between(1, 2),
    isDryRun: random.chance(0.1),
  }
}

/** Packs are merged, perhaps again when the merged ones are old enough for it. */
function compactionsOf(random: Random, models: readonly PlannedModel[], last: number): Placed[] {
  const placed: Placed[] = []
  for (let left = random.between(1, 3); left > 0; left--) {
    const { projectId } = random.pick(models)
    const place = random.below(last + 2)
    placed.push({ place, operation: { kind: 'compact', projectId, all: random.chance(0.7) } })
    if (random.chance(0.3)) placed.push({ place: place + 1, operation: readOf(random, random.pick(models)) })
    if (random.chance(0.3))
      placed.push({ place: place + 1, operation: { kind: 'age', projectId, epochs: random.pick([1, 3, 150]) } })
  }
  return placed
}

function maintenanceOf(random: Random, projectId: string): Unplaced {
  return { kind: 'maintenance', task: random.chance(0.3) ? 'check' : 'reindex', projectId }
}

function downloadOf(random: Random, { projectId, versions }: PlannedModel, at: number): Unplaced {
  const { rootId } = versions[at]
  if (at === 0 || random.chance(0.4))
    return {
      kind: 'download',
      projectId,
      rootId,
      form: random.pick(['records', 'gzip', 'identity']),
      haveRootId: undefined,
    }
  const form = random.pick(['records', 'gzip', 'identity', 'deltas', 'deltas'] as const)
  return { kind: 'download', projectId, rootId, form, haveRootId: versions[random.below(at)].rootId }
}
