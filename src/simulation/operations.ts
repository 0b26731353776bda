import { conflicting, planModel, type PlannedModel, type PlannedObject, type PlannedVersion } from './models.ts'
import type { Random } from './random.ts'

interface Planned {
  /** Its place in the plan, which stays when others are left out. */
  readonly index: number
  readonly atMs: number
  readonly server: number
  readonly projectId: string
}

/** Objects for an upload; `isBroken` cuts the body in the middle, `asks` leaves out what the server says that it holds. */
export interface PlannedUpload extends Planned {
  readonly kind: 'upload'
  readonly objects: readonly PlannedObject[]
  readonly isBroken: boolean
  readonly isZipped: boolean
  readonly asks: boolean
  /** An older version, as the base of deltas, where the client has it. */
  readonly olderRootId?: string | undefined
}

/** A graph, whole or without what the client has of an older version. */
export interface PlannedDownload extends Planned {
  readonly kind: 'download'
  readonly rootId: string
  readonly form: 'records' | 'gzip' | 'identity' | 'deltas'
  readonly haveRootId: string | undefined
}

export interface PlannedLookUp extends Planned {
  readonly kind: 'has' | 'list' | 'single'
  readonly ids: readonly string[]
}

export interface PlannedRemoval extends Planned {
  readonly kind: 'remove'
}

/** Closes the service and starts it anew. */
export interface PlannedRestart extends Planned {
  readonly kind: 'restart'
}

/** What a client, or an operator, does. */
export type Operation = PlannedUpload | PlannedDownload | PlannedLookUp | PlannedRemoval | PlannedRestart
export type OperationKind = Operation['kind']

/** The operation without its place. */
type Unplaced = Operation extends infer O
  ? O extends Operation
    ? Omit<O, keyof Planned> & { projectId: string }
    : never
  : never

/** What clients do in one run. */
export function planOperations(
  random: Random,
  servers: number,
): { models: readonly PlannedModel[]; operations: readonly Operation[] } {
  const projects = random.chance(0.8) ? ['p'] : ['p', 'q']
  const models = Array.from({ length: random.between(1, 3) }, (_, at) =>
    planModel(random.fork(`model ${at}`), random.pick(projects), `m${at}`),
  )
  const uploads = random
    .shuffled(models)
    .flatMap((model) => model.versions.flatMap((version, at) => uploadsOf(random, model, version, at)))
  const reads = Array.from({ length: random.between(4, 14) }, () => readOf(random, random.pick(models)))
  const rest: Unplaced[] = []
  if (random.chance(0.2))
    for (let left = random.between(1, 2); left > 0; left--)
      rest.push({ kind: 'remove', projectId: random.pick(projects) })
  if (random.chance(0.4))
    for (let left = random.between(1, 3); left > 0; left--) rest.push({ kind: 'restart', projectId: projects[0] })
  const unplaced = interleaved(random, uploads, [...reads, ...rest])
  const everyMs = random.pick([2, 10, 30, 100, 400])
  let atMs = 0
  const operations = unplaced.map((operation, index): Operation => {
    atMs += random.below(everyMs * 2)
    return { ...operation, index, atMs, server: random.below(servers) }
  })
  return { models, operations }
}

/** Uploads stay about in their order; the rest comes anywhere among them, later rather than sooner. */
function interleaved(random: Random, uploads: readonly Unplaced[], others: readonly Unplaced[]): Unplaced[] {
  const placed = uploads.map((operation, at) => ({ operation, place: at + random.below(3) }))
  for (const operation of others) placed.push({ operation, place: random.below(uploads.length + 2) + 1 })
  return placed.sort((a, b) => a.place - b.place).map(({ operation }) => operation)
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

function readOf(random: Random, { projectId, versions }: PlannedModel): Unplaced {
  const at = random.below(versions.length)
  const version = versions[at]
  const some = version.objects.map(({ id }) => id).filter(() => random.chance(0.5))
  const draw = random.below(10)
  if (draw < 6) {
    const haveRootId = at > 0 && random.chance(0.6) ? versions[random.below(at)].rootId : undefined
    const form =
      haveRootId === undefined
        ? random.pick(['records', 'gzip', 'identity'] as const)
        : random.pick(['records', 'gzip', 'deltas', 'deltas'] as const)
    return { kind: 'download', projectId, rootId: version.rootId, form, haveRootId }
  }
  const kind = draw < 7 ? 'single' : draw < 8 ? 'list' : 'has'
  return { kind, projectId, ids: kind === 'single' ? [version.rootId] : some }
}
