import type { RunDetails } from '../../../src/automation-server/index.ts'
import { decodeRecord } from '../../../src/automation-server/records/codec.ts'
import { boundsOf, globalKey, projectKey } from '../../../src/automation-server/records/keys.ts'
import type { RunRecord } from '../../../src/automation-server/domain/run-record.ts'
import type { ServerLife } from '../../../src/simulation/server.ts'
import { Violation } from '../../../src/simulation/oracle.ts'
import { type Acts, all } from './acts.ts'
import { isFinal, type KnownAutomation, type KnownVersion } from './book.ts'
import { PROJECT_ID } from './functions.ts'
import { ALL_ENDED_MS, type AutomationWorld } from './world.ts'

const LOOK_INTERVAL_MS = 5_000

/** Waits until every run has ended, then compares what all servers show with what clients know. */
export async function lookAtEnd(world: AutomationWorld, acts: Acts): Promise<void> {
  const lives = world.servers.map((server) => world.life(server))
  for (const { service } of lives) await service.ready()
  await untilEnded(world, acts, lives)
  for (const life of lives) {
    await acts.list(life)
    for (const version of world.book.versions) await acts.download(version, life)
    await lookAtRuns(world, acts, life)
    await lookAtCounts(world, life)
  }
  nothingIsLeased(world)
}

async function untilEnded(world: AutomationWorld, acts: Acts, lives: readonly ServerLife[]): Promise<void> {
  const deadlineMs = world.scheduler.nowMs + ALL_ENDED_MS
  for (;;) {
    await world.sleep(LOOK_INTERVAL_MS)
    const runs = await all((request) => world.project(lives[0]).runs.list(request))
    const open = runs.filter((run) => !isFinal(run))
    if (open.length === 0 && marksOf(world, 'trigger') === 0) break
    if (world.scheduler.nowMs > deadlineMs) {
      const [first] = open
      throw new Violation(first ? `the run ${first.id} is still ${first.status}` : 'a version still waits for its runs')
    }
  }
  for (const life of lives) await acts.list(life)
}

/** Every known run is there, with its reports, and every version started what it must start, once. */
async function lookAtRuns(world: AutomationWorld, acts: Acts, life: ServerLife): Promise<void> {
  const { book } = world
  const runs = new Map<string, RunDetails>()
  for (const id of book.runIds) {
    const run = await acts.readRun(id, life)
    if (run === undefined) continue
    if (!isFinal(run)) throw new Violation(`the run ${id} is ${run.status} after the end`)
    runs.set(id, run)
    const annotations = await all((request) => world.project(life).runs.annotations(id, request))
    book.sawAnnotations(
      run,
      annotations.map(({ message }) => message ?? ''),
    )
  }
  for (const automation of book.automations)
    for (const version of book.versions) checkTriggered(world, { automation, version, runs })
}

function checkTriggered(
  { book }: AutomationWorld,
  parts: {
    readonly automation: KnownAutomation
    readonly version: KnownVersion
    readonly runs: ReadonlyMap<string, RunDetails>
  },
): void {
  const { automation, version, runs } = parts
  const own = [...runs.values()].filter(
    ({ automationId, versionId, triggeredBy }) =>
      automationId === automation.id && versionId === version.id && triggeredBy.kind === 'version',
  )
  if (own.length > 1) throw new Violation(`the version ${version.id} started ${automation.id} ${own.length} times`)
  const isMatch = automation.model === version.model && automation.created.end < version.created.start
  const isLed = chainOf(version.id, runs).has(automation.id)
  if (own.length === 1 && isLed) throw new Violation(`the version ${version.id} started the automation that led to it`)
  const now = book.timeline.begin()
  const isUntouched = version.fate.isUntouched(now) && version.model.fate.isUntouched(now)
  if (isMatch && !isLed && isUntouched && own.length === 0 && !hasReachedBound(version.id, runs))
    throw new Violation(`the version ${version.id} did not start the automation ${automation.id}`)
}

/** Whether as many runs followed from the cause of a version as may. */
function hasReachedBound(versionId: string, runs: ReadonlyMap<string, RunDetails>): boolean {
  const causeId = maker(versionId, runs)?.cause.id ?? versionId
  return [...runs.values()].some(({ cause }) => cause.id === causeId && cause.notStarted > 0)
}

/** The run that made a version. */
function maker(versionId: string, runs: ReadonlyMap<string, RunDetails>): RunDetails | undefined {
  return [...runs.values()].find(({ createdVersions }) =>
    createdVersions.some((created) => created.versionId === versionId),
  )
}

/** The automations whose runs led to a version. */
function chainOf(versionId: string, runs: ReadonlyMap<string, RunDetails>): ReadonlySet<string> {
  const chain = new Set<string>()
  for (let version: string | undefined = versionId; version !== undefined;) {
    const source = maker(version, runs)
    if (source !== undefined) chain.add(source.automationId)
    version = source?.versionId
  }
  return chain
}

/** What a model says about its versions is what its list shows. */
async function lookAtCounts(world: AutomationWorld, life: ServerLife): Promise<void> {
  const { models, versions } = world.project(life)
  for (const { id, versionCount, latestVersionId } of await all((request) => models.list(request))) {
    const listed = await all((request) => versions.list(id, request))
    if (listed.length !== versionCount)
      throw new Violation(`the model ${id} counts ${versionCount} versions, and lists ${listed.length}`)
    if ((listed[0]?.id ?? null) !== latestVersionId)
      throw new Violation(`the latest version of the model ${id} is ${listed[0]?.id}, and not ${latestVersionId}`)
  }
}

/** No run has a lease, and no mark says that there is work. */
function nothingIsLeased(world: AutomationWorld): void {
  for (const table of ['active', 'trigger'] as const)
    if (marksOf(world, table) > 0) throw new Violation(`a mark of the kind ${table} is left`)
  // A project that is never removed has one generation.
  const scope = { projectId: PROJECT_ID, generation: 1 }
  const waiting = world.storage.slice(boundsOf(projectKey(scope, 'waiting')), Infinity)
  if (waiting.length > 0) throw new Violation('a run that has ended still has its place in the queue')
  for (const { key, value } of world.storage.slice(boundsOf(projectKey(scope, 'run')), Infinity)) {
    const { id, leaseBeat } = decodeRecord<RunRecord>(key, value)
    if (leaseBeat !== null) throw new Violation(`the run ${id} has ended, and is leased`)
  }
}

function marksOf({ storage }: AutomationWorld, table: 'active' | 'trigger'): number {
  return storage.slice(boundsOf(globalKey(table)), Infinity).length
}
