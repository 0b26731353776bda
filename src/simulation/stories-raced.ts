import type { Random } from './random.ts'
import { type Story, Teller } from './story.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
/** A server that looked at the epoch before sees by then that it is another one. */
const EPOCH_SEEN_MS = 150 * SECOND_MS
/** By then, a server has begun an epoch and swept, whenever it began to count the time. */
const SWEPT_MS = 15 * MINUTE_MS
/** Retired packs are due after so many epochs. */
const DAY_EPOCHS = 150
/** Two servers do work at once that concerns the same objects. */
const ONE = 0
const OTHER = 1

/**
 * One collection is about to condemn what no root leads to. Another begins, finds a root that came meanwhile, and says
 * so in the pack: of the first, which takes up its work again before that, nothing must take effect any more.
 */
function condemnedWhileKept(tell: Teller): void {
  const leaf = tell.object('leaf')
  const root = tell.object('root', { children: [leaf] })
  tell.root(root)
  tell.keeper()
  tell.upload([leaf, root])
  tell.pause(3)
  tell.on(ONE)
  tell.collect(1, 1, 0, { hold: { call: 'commit o', nth: 1, durationMs: 3 * SECOND_MS } })
  tell.on(OTHER)
  tell.pin(root, SECOND_MS)
  // The commit that says what the pack owns. The one of the pin has been made.
  tell.collect(1, 1, SECOND_MS, { hold: { call: 'commit h', nth: 1, durationMs: 3 * SECOND_MS } })
  tell.on(undefined)
  tell.pause()
  tell.look(leaf, root)
  tell.upload([leaf, root], { asks: true })
  tell.pause()
  tell.download(root)
}

/** One server is about to free objects, and to lower the totals, when another adds to them: nothing counts for ever. */
function freedWhileCounted(tell: Teller): void {
  const old = Array.from({ length: 3 }, (_, at) => tell.object(`old${at}`))
  const next = tell.object('next')
  const keeper = tell.keeper()
  tell.root(keeper)
  tell.mayHold({ objectsMax: old.length + 2 })
  tell.upload(old)
  tell.pause(3)
  tell.collect(1)
  tell.pause(2)
  tell.on(ONE)
  // The commit that frees objects lowers the totals first.
  tell.collect(1, 1, 0, { hold: { call: 'commit t', nth: 1, durationMs: 3 * SECOND_MS } })
  tell.on(OTHER)
  tell.upload([next], {}, SECOND_MS)
  tell.on(undefined)
  tell.pause()
  tell.list(...old, next)
}

/** A pin has found everything alive, and is about to be committed, while what it needs is condemned and freed. */
function pinnedWhileCollected(tell: Teller): void {
  const leaf = tell.object('leaf')
  const root = tell.object('root', { children: [leaf] })
  tell.root(root)
  tell.keeper()
  tell.upload([leaf, root])
  tell.pause(3)
  const durationMs = 3 * EPOCH_SEEN_MS
  tell.on(ONE)
  // Its look at the other pins, before it reads the head that its commit expects.
  tell.pin(root, 0, { hold: { call: 'range r', nth: 1, durationMs }, patienceMs: 2 * durationMs })
  tell.on(OTHER)
  tell.collect(1, 1, SECOND_MS)
  tell.pass(3, SECOND_MS)
  tell.collect(1, 1, EPOCH_SEEN_MS)
  tell.on(undefined)
  tell.pause()
  tell.look(leaf, root)
  tell.download(root)
}

/** An export has begun, and goes on when the packs that it would take have been merged, and dropped a day later. */
function exportedWhileDropped(tell: Teller): void {
  const objects = ['one', 'two', 'three', 'four'].map((name) => tell.object(name))
  tell.root(objects[0])
  for (const object of objects) tell.upload([object])
  tell.pause()
  // Nothing was taken from the packs yet: an export whose packs are gone repeats what it has.
  const hold = { call: 'range k', nth: 1, durationMs: 2 * SWEPT_MS }
  tell.on(ONE)
  tell.export({ pageBytes: 1, hold, patienceMs: 3 * SWEPT_MS })
  tell.on(OTHER)
  tell.compact(SECOND_MS)
  tell.pass(DAY_EPOCHS, MINUTE_MS)
  tell.on(undefined)
  tell.pause()
  tell.list(...objects)
}

/** An object that an older version lacked comes while a client that has this version is sent deltas on it. */
function comparedWhileCompleted(tell: Teller): void {
  const text = 'Versions of one object have nearly the same text. '.repeat(8)
  const same = tell.object('same')
  const late = tell.object('late', { text: `${text}late` })
  const next = tell.object('next', { text: `${text}next` })
  const older = tell.object('older', { children: [late, same] })
  const newer = tell.object('newer', { children: [next, same] })
  tell.root(older)
  tell.root(newer)
  tell.upload([same, older])
  tell.pause()
  tell.on(ONE)
  tell.download(older, { form: 'gzip' })
  tell.upload([next, newer])
  tell.pause()
  const hold = { call: 'getMany o', nth: tell.random.between(4, 5), durationMs: 3 * SECOND_MS }
  // The place of this operation is odd, so the client names the digest of its version.
  tell.download(newer, { form: 'deltas', haveRootId: older.id, hold })
  tell.on(OTHER)
  tell.upload([late], {}, SECOND_MS)
  tell.on(undefined)
  tell.pause()
  tell.download(older)
}

const STORIES_OF_RACES: readonly ((tell: Teller) => void)[] = [
  condemnedWhileKept,
  freedWhileCounted,
  pinnedWhileCollected,
  exportedWhileDropped,
  comparedWhileCompleted,
]

/** A story of two servers of which one changes what the other has looked at. */
export function planRacedStory(random: Random, projectId: string): Story {
  const at = random.below(STORIES_OF_RACES.length)
  const tell = new Teller(random, projectId, `w${at.toString(36)}`)
  STORIES_OF_RACES[at](tell)
  return tell.story
}
