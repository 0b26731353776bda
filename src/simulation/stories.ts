import type { Random } from './random.ts'
import type { PlannedUpload } from './operations.ts'
import {
  appliesWhileRemoved,
  comparesWhileMerged,
  mergesWhileMerged,
  pinsWhileDropped,
  readsWhileRemoved,
  readsWhileSwept,
  reindexesOnFullDisk,
  reindexesWhatWasCut,
  walksWhileMerged,
} from './stories-held.ts'
import { plannedAndFreed } from './stories-planned.ts'
import { type Story, Teller } from './story.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
/** As long as a server sleeps in the middle of an upload: longer than the others keep a blob without a name. */
const LONG_SLEEP_MS = 3.4 * HOUR_MS
/** An upload of some objects is about done by then. */
const UPLOAD_MS = 30
/** In some stories one server sleeps, and another does what it does not expect. */
const SLEEPER = 0
const OTHER = 1
/** None of so many is visible only together with the note that all are. */
const OBJECTS_WITHOUT_LAST = 10
/** Retired packs and blobs without a name are due after so many epochs. */
const DAY_EPOCHS = 150
/** By then, a server has begun an epoch and swept. */
const SWEPT_MS = 15 * MINUTE_MS

/** Old objects below a young one. */
function youngOverOld(tell: Teller): void {
  const leaf = tell.object('leaf')
  const parent = tell.object('parent', { children: [leaf] })
  tell.root(parent)
  tell.keeper()
  tell.upload([leaf])
  tell.pause(5)
  tell.upload([parent])
  tell.pause()
  tell.collect(3)
  tell.pause()
  tell.look(leaf, parent)
  if (tell.random.chance(0.5)) tell.pause(1)
  tell.collect(3)
  tell.pause()
  tell.look(leaf)
}

/** What was condemned is uploaded again. */
function condemnedAgain(tell: Teller): void {
  const leaf = tell.object('leaf')
  const root = tell.object('root', { children: [leaf] })
  tell.root(root)
  tell.keeper()
  tell.upload([leaf])
  tell.pause(3)
  tell.collect(1)
  tell.pause()
  tell.look(leaf)
  tell.upload([leaf], { asks: true })
  tell.pause(2)
  tell.collect(8)
  tell.pause()
  tell.look(leaf)
  tell.upload([root])
  tell.pause()
  if (tell.random.chance(0.5)) tell.compact()
  tell.pause(2)
  tell.collect(8)
}

/** A pin comes while what it needs is freed. In some runs it revives that between the look at it and the commit. */
function pinnedWhileFreed(tell: Teller): void {
  const isHeldBack = tell.random.fork('held back').chance(0.5)
  const leaf = tell.object('leaf')
  const root = tell.object('root', { children: [leaf] })
  tell.root(root)
  tell.keeper()
  tell.upload([leaf, root])
  if (tell.random.chance(0.5)) {
    tell.pause()
    tell.download(root)
  }
  tell.pause(3)
  tell.collect(1)
  tell.pause(2)
  const isLate = tell.random.chance(0.7)
  if (!isLate) tell.pin(root)
  // The commit that frees objects lowers the totals first.
  const hold = { call: 'commit t', nth: 1, durationMs: 10 * SECOND_MS }
  tell.collect(1, 1, 0, isHeldBack ? { hold } : {})
  if (isLate) tell.pin(root, tell.random.below(80) + (isHeldBack ? SECOND_MS : 0))
  if (isLate && tell.random.chance(0.5)) tell.pin(root, tell.random.below(30))
  tell.pause()
  tell.look(root)
  tell.download(root)
  tell.pause(3)
  tell.collect(1)
  tell.pause()
  tell.look(root)
}

/** Merges while somebody reads slowly, and their packs go. */
function mergedWhileRead(tell: Teller): void {
  const leaves = Array.from({ length: tell.random.between(2, 4) }, (_, at) =>
    tell.object(`leaf${at}`, { isLarge: true }),
  )
  const root = tell.object('root', { children: leaves })
  tell.root(root)
  for (const leaf of leaves) tell.upload([leaf])
  tell.upload([root])
  tell.pause()
  tell.download(root)
  tell.look(root)
  tell.pause()
  tell.download(root, { form: 'identity', pauseMs: 3_000 })
  tell.compact(5)
  tell.restart(3_000)
  tell.look(root)
  tell.pause()
  tell.download(root)
  tell.pause(DAY_EPOCHS, SWEPT_MS)
  tell.download(root)
  tell.download(root, { form: 'gzip' }, 20)
}

/** A server sleeps in the middle of an upload, past everything that others do with what it left. */
function sleepsWhileUploading(tell: Teller): void {
  const isLarge = tell.random.chance(0.6)
  const objects = isLarge
    ? [tell.object('late', { isLarge })]
    : Array.from({ length: OBJECTS_WITHOUT_LAST }, (_, at) => tell.object(`late${at}`))
  tell.root(objects[0])
  const keeper = tell.keeper()
  for (let left = 3; left > 0; left--) tell.look(keeper)
  tell.pause()
  tell.on(SLEEPER)
  const afterCall = isLarge && tell.random.chance(0.7) ? 'put publishes' : 'commit'
  tell.upload(objects, { sleep: { afterCall, durationMs: LONG_SLEEP_MS } })
  tell.on(OTHER)
  tell.look(keeper)
  tell.pause(3, 3 * MINUTE_MS)
  tell.collect(1)
  tell.pause(3, 2.3 * HOUR_MS)
  tell.collect(1)
  tell.pause(DAY_EPOCHS, SWEPT_MS)
  tell.pause(0, HOUR_MS)
  tell.download(objects[0])
}

/** A server sleeps in the middle of an upload while others remove the project and sweep it, once or twice. */
function sleepsPastRemoval(tell: Teller): void {
  const first = tell.object('first')
  const leaves = Array.from({ length: 40 }, (_, at) => tell.object(`leaf${at}`))
  tell.root(first)
  for (let rounds = 3; rounds > 0; rounds--) {
    tell.on(OTHER)
    tell.upload([first])
    tell.pause()
    tell.on(SLEEPER)
    const durationMs = tell.random.pick([2 * MINUTE_MS, HOUR_MS])
    tell.upload(leaves, { sleep: { afterCall: 'commit', durationMs } })
    tell.on(OTHER)
    tell.remove(undefined, UPLOAD_MS + 30)
    tell.pause(0, HOUR_MS)
  }
}

/** Its server dies, or stands still for a moment, or neither. */
function disturbedUpload({ random }: Teller): Partial<PlannedUpload> {
  const draw = random.below(4)
  if (draw === 0) return { crashAfterMs: random.between(8, 30) }
  return draw === 1 ? {} : { sleep: { afterMs: random.between(16, 30), durationMs: 2_000 } }
}

/** A project is removed again and again, while somebody uploads and reads, and servers die. */
function removedWhileUsed(tell: Teller): void {
  const leaves = Array.from({ length: 40 }, (_, at) => tell.object(`leaf${at}`))
  const root = tell.object('root', { children: leaves })
  tell.root(root)
  for (let rounds = 3; rounds > 0; rounds--) {
    const isHeld = tell.random.chance(0.5)
    tell.upload(isHeld ? [...leaves, root] : [root])
    tell.pause()
    if (!isHeld) tell.upload(leaves, disturbedUpload(tell))
    tell.download(root)
    tell.remove(tell.random.chance(0.6) ? tell.random.below(28) : undefined, tell.random.below(24))
    tell.download(root, {}, 4)
    tell.pause(0, MINUTE_MS)
  }
  if (tell.random.chance(0.5)) tell.reindex()
}

/** A plan that is stored, and what becomes of it when more comes, packs are merged, or the project goes. */
function plannedMeanwhile(tell: Teller): void {
  const claimed = tell.object('claimed', { isLarge: true })
  const later = tell.object('later')
  const root = tell.rootOfClaims('root', [claimed, later])
  tell.root(root)
  if (tell.random.chance(0.5)) {
    for (let rounds = 3; rounds > 0; rounds--) {
      tell.upload([claimed, root])
      tell.pause()
      tell.download(root)
      tell.remove(undefined, tell.random.below(24))
      tell.pause()
    }
    return
  }
  tell.upload([claimed, root])
  tell.pause()
  tell.download(root)
  tell.pause()
  tell.download(root)
  tell.upload([later])
  tell.pause()
  tell.download(root)
  tell.compact(tell.random.below(10))
  tell.pause(tell.random.pick([0, DAY_EPOCHS]), SWEPT_MS)
  tell.download(root)
}

/** Many read a root while one of its children comes: below the other, long chains have to be followed. */
function readWhileWritten(tell: Teller): void {
  const late = tell.object('late')
  let chain = tell.object('end')
  tell.upload([chain])
  for (let depth = 6; depth > 0; depth--) {
    chain = tell.object(`chain${depth}`, { children: [chain] })
    tell.upload([chain])
  }
  const root = tell.object('root', { children: [late, chain] })
  tell.root(root)
  tell.upload([root])
  tell.pause()
  if (tell.random.chance(0.5)) tell.download(root)
  tell.pause()
  tell.on(SLEEPER)
  tell.upload([late], { sleep: { afterCall: 'commit', durationMs: tell.random.between(10, 50) } })
  tell.on(OTHER)
  for (let left = 24; left > 0; left--) tell.download(root, { form: 'records' }, tell.random.between(2, 5))
}

/** Much that nothing needs any more. */
function garbage(tell: Teller): void {
  const large = Array.from({ length: 2 }, (_, at) => tell.object(`large${at}`, { isLarge: true }))
  const keeper = tell.keeper()
  tell.root(keeper)
  if (tell.random.chance(0.5)) tell.upload([...large, tell.object('root', { children: large })])
  else for (const one of large) tell.upload([one])
  tell.pause(3)
  tell.collect(1)
  if (tell.random.chance(0.5)) tell.pause(3)
  tell.collect(1)
}

/** The last that a server does is to die in an upload; others live on. */
function diesWhileUploading(tell: Teller): void {
  const first = tell.object('first')
  const leaves = Array.from({ length: 6 }, (_, at) => tell.object(`leaf${at}`))
  const root = tell.object('root', { children: [first, ...leaves] })
  tell.root(root)
  tell.upload([first])
  for (let left = 5; left > 0; left--) tell.look(first)
  tell.pause()
  tell.upload([...leaves, root], { crashAfterMs: tell.random.between(14, 34) })
  tell.comesLast()
}

const STORIES: readonly ((tell: Teller) => void)[] = [
  youngOverOld,
  condemnedAgain,
  pinnedWhileFreed,
  mergedWhileRead,
  sleepsWhileUploading,
  sleepsPastRemoval,
  removedWhileUsed,
  plannedMeanwhile,
  plannedAndFreed,
  readWhileWritten,
  garbage,
  diesWhileUploading,
  walksWhileMerged,
  comparesWhileMerged,
  readsWhileSwept,
  pinsWhileDropped,
  mergesWhileMerged,
  readsWhileRemoved,
  appliesWhileRemoved,
  reindexesWhatWasCut,
  reindexesOnFullDisk,
]

/** In these one server does what the others do not expect. */
const STORIES_OF_SEVERAL: readonly ((tell: Teller) => void)[] = [
  mergedWhileRead,
  sleepsWhileUploading,
  sleepsPastRemoval,
  removedWhileUsed,
  readWhileWritten,
  diesWhileUploading,
  mergesWhileMerged,
  appliesWhileRemoved,
]

/** One server alone has nothing to tell in these. */
const NEVER_OF_ONE: ReadonlySet<(tell: Teller) => void> = new Set([appliesWhileRemoved])

/** One of the stories. */
export function planStory(random: Random, projectId: string, servers: number): Story {
  const ofOne = STORIES.filter((story) => !NEVER_OF_ONE.has(story))
  const ofSeveral = random.chance(0.5) ? STORIES_OF_SEVERAL : STORIES
  const at = STORIES.indexOf(random.pick(servers > 1 ? ofSeveral : ofOne))
  const tell = new Teller(random, projectId, `x${at.toString(36)}`)
  STORIES[at](tell)
  return tell.story
}
