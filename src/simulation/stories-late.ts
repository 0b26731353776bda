import type { Random } from './random.ts'
import { type Story, Teller } from './story.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
/** Retired packs are due after so many epochs. */
const DAY_EPOCHS = 150
/** By then, a server has begun an epoch and swept, whenever it began to count the time. */
const SWEPT_MS = 15 * MINUTE_MS
/** By then, another server has applied what a server that sleeps has committed. */
const APPLIED_MS = 3 * MINUTE_MS
/** Within so much time, packs are merged and objects collected. */
const SLEEP_MS = HOUR_MS
/** None of so many is visible only together with the note that all are. */
const OBJECTS_WITHOUT_LAST = 10
/** A collection takes back nothing of what it condemned for so long. */
const UNDONE_EPOCHS = 1_000
/** One server sleeps or dies, and the other goes on. */
const LATE = 0
const OTHER = 1

/** A server sleeps before it writes the ids of an upload, while they are condemned, freed, or moved to a merged pack. */
function uploadedLate(tell: Teller): void {
  const objects = Array.from({ length: OBJECTS_WITHOUT_LAST }, (_, at) => tell.object(`late${at}`))
  tell.root(objects[0])
  const keeper = tell.keeper()
  for (let left = 3; left > 0; left--) tell.look(keeper)
  tell.pause()
  tell.on(LATE)
  tell.upload(objects, { sleep: { afterCall: 'commit', durationMs: SLEEP_MS } })
  tell.on(OTHER)
  tell.look(keeper)
  tell.pause(3, APPLIED_MS)
  const isFreed = tell.random.chance(0.5)
  if (isFreed && tell.random.chance(0.7)) tell.compact()
  tell.collect(1, isFreed ? 1 : UNDONE_EPOCHS)
  tell.pause(3)
  if (isFreed) tell.collect(1)
  tell.pause()
  tell.compact()
  tell.pause(0, SLEEP_MS)
  tell.list(...objects)
  tell.pause(DAY_EPOCHS, SWEPT_MS)
  tell.list(...objects)
}

/** A merge is cut off before it takes effect, and goes on a day later, while somebody reads what it replaces. */
function mergedLate(tell: Teller, servers: number): void {
  const leaves = ['one', 'two', 'three'].map((name) => tell.object(name, { isLarge: true }))
  const root = tell.object('root', { children: leaves })
  tell.root(root)
  for (const leaf of leaves) tell.upload([leaf])
  tell.upload([root, tell.object('beside')])
  tell.pause()
  tell.on(OTHER)
  // Its plan is in the memory of this server from now on: later reads are those of the answer.
  tell.download(root)
  tell.pause()
  // Whoever goes on does not remember the epoch from before.
  const sleep = { afterMs: SECOND_MS, durationMs: SLEEP_MS }
  const hold = { call: 'read pack', nth: tell.random.between(1, 2), durationMs: SLEEP_MS + SWEPT_MS }
  tell.download(root, { form: 'identity', hold, sleep, patienceMs: 2 * SLEEP_MS })
  for (let server = OTHER + 1; server < servers; server++) {
    tell.on(server)
    tell.download(root, { sleep })
  }
  tell.on(LATE)
  // The commit that retires the packs. The one that makes the merge take effect does not come.
  const cutOff = { afterCall: 'commit k', durationMs: MINUTE_MS } as const
  tell.compact(200, { sleep: cutOff, crashAfterMs: 5 * SECOND_MS })
  tell.pass(DAY_EPOCHS, 10 * SECOND_MS)
  tell.on(undefined)
  tell.pause()
  tell.download(root)
}

/** Somebody counts, or takes along, what a project holds while condemned objects come again, and are not visible yet. */
function lookedAtEarly(tell: Teller): void {
  const objects = Array.from({ length: OBJECTS_WITHOUT_LAST }, (_, at) => tell.object(`again${at}`))
  tell.root(objects[0])
  const keeper = tell.keeper()
  if (tell.random.chance(0.5)) {
    tell.upload(objects)
    tell.pause(3)
    tell.collect(1, UNDONE_EPOCHS)
  }
  // In half of the runs the first server is asked in the end, and remembers what it counted.
  const [early, late] = [0, 1]
  tell.on(early)
  tell.look(keeper)
  tell.pause()
  tell.on(late)
  tell.upload(objects, { sleep: { afterCall: 'commit', durationMs: 20 * SECOND_MS } })
  tell.on(early)
  tell.count(SECOND_MS)
  // Pages with condemned objects come before it, and pages with the same ones, as they came again, behind it.
  const hold = { call: 'range k', nth: tell.random.between(6, 12), durationMs: 30 * SECOND_MS }
  tell.export({ pageBytes: 1, hold })
  tell.pause(0, APPLIED_MS)
}

const STORIES_OF_LATE_WORK: readonly ((tell: Teller, servers: number) => void)[] = [
  uploadedLate,
  mergedLate,
  lookedAtEarly,
]

/** A story of two servers of which one ends its work long after it began with it. */
export function planLateStory(random: Random, projectId: string, servers: number): Story {
  const at = random.below(STORIES_OF_LATE_WORK.length)
  const tell = new Teller(random, projectId, `z${at.toString(36)}`)
  STORIES_OF_LATE_WORK[at](tell, servers)
  return tell.story
}
