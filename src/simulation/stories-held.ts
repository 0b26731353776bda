import type { PlannedObject } from './models.ts'
import type { Teller } from './story.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
/** Retired packs are due after so many epochs. */
const DAY_EPOCHS = 150
/** A server that looked at the epoch before sees by then that it is another one. */
const EPOCH_SEEN_MS = 150 * SECOND_MS
/** By then, a server has begun an epoch and swept, whenever it began to count the time. */
const SWEPT_MS = 15 * MINUTE_MS
/** A client that waits for a call that takes until then. */
const PATIENCE_MS = SWEPT_MS + 5 * MINUTE_MS
/** Packs that were merged may be merged again after so many epochs. */
const MERGE_AGE_EPOCHS = 3

/** Uploads one pack for each object, and one for the root with something beside it: nobody makes its plan ahead. */
function uploadEach(tell: Teller, leaves: readonly PlannedObject[], root: PlannedObject): void {
  for (const leaf of leaves) tell.upload([leaf])
  tell.upload([root, tell.object('beside')])
}

function treeOf(tell: Teller, { isLarge = false } = {}): { leaves: PlannedObject[]; root: PlannedObject } {
  const leaves = ['one', 'two', 'three'].map((name) => tell.object(name, { isLarge }))
  const root = tell.object('root', { children: leaves })
  tell.root(root)
  return { leaves, root }
}

/** Packs are merged twice while a walk waits for the storage, long enough that it cannot find its way any more. */
export function walksWhileMerged(tell: Teller): void {
  const { leaves, root } = treeOf(tell)
  uploadEach(tell, leaves, root)
  tell.pause()
  const hold = { call: 'getMany o', nth: 2, durationMs: 2 * EPOCH_SEEN_MS }
  tell.on(0)
  tell.download(root, { hold, patienceMs: PATIENCE_MS })
  tell.on(1)
  tell.compact(200, { patienceMs: PATIENCE_MS })
  tell.pass(MERGE_AGE_EPOCHS, SECOND_MS)
  tell.upload([tell.object('later')], {}, EPOCH_SEEN_MS)
  tell.compact(SECOND_MS)
  tell.on(undefined)
  tell.pause()
  tell.download(root)
}

/** Packs are merged, and more come and are merged, while somebody asks for what is new since an older version. */
export function comparesWhileMerged(tell: Teller): void {
  const { leaves, root } = treeOf(tell)
  const newer = tell.object('newer', { children: [root] })
  tell.root(newer)
  uploadEach(tell, leaves, root)
  tell.pause()
  tell.on(0)
  tell.download(root, { form: 'gzip' })
  tell.upload([newer, tell.object('beside newer')])
  tell.pause()
  const hold = { call: 'getMany o', nth: 2, durationMs: 10 * SECOND_MS }
  tell.download(newer, { form: tell.random.pick(['records', 'gzip']), haveRootId: root.id, hold })
  tell.on(1)
  tell.compact(200)
  tell.upload([tell.object('later')], {}, SECOND_MS)
  tell.compact(SECOND_MS)
  tell.on(undefined)
  tell.pause()
  tell.download(newer)
}

/** Packs are merged, and blobs that are due are swept, while somebody reads slowly. */
export function readsWhileSwept(tell: Teller): void {
  const { leaves, root } = treeOf(tell, { isLarge: true })
  uploadEach(tell, leaves, root)
  tell.pause()
  tell.on(0)
  // Its plan is in the memory of this server from now on: later reads are those of the answer.
  tell.download(root)
  tell.pause()
  const hold = { call: 'read pack', nth: tell.random.between(1, 2), durationMs: SWEPT_MS }
  tell.download(root, { form: 'identity', hold, patienceMs: PATIENCE_MS })
  tell.on(1)
  tell.compact(200, { patienceMs: PATIENCE_MS })
  tell.on(undefined)
  tell.pause()
  tell.download(root)
}

/** Packs are merged, and a day later they go, while somebody pins what lies in them. */
export function pinsWhileDropped(tell: Teller): void {
  const { leaves, root } = treeOf(tell)
  uploadEach(tell, leaves, root)
  tell.pause()
  tell.compact()
  tell.pause(MERGE_AGE_EPOCHS)
  tell.upload([tell.object('later')])
  tell.pause()
  const hold = { call: 'getMany h', nth: 3, durationMs: SWEPT_MS }
  tell.on(0)
  tell.pin(root, 0, { hold, patienceMs: PATIENCE_MS })
  tell.on(1)
  tell.compact(200, { patienceMs: PATIENCE_MS })
  tell.pass(DAY_EPOCHS, SECOND_MS)
  tell.on(undefined)
  tell.pause()
  tell.download(root)
}

/** Others merge and collect while a merge is being written. */
export function mergesWhileMerged(tell: Teller): void {
  const { leaves, root } = treeOf(tell, { isLarge: true })
  tell.keeper()
  uploadEach(tell, leaves, root)
  if (tell.random.chance(0.5)) tell.pin(root)
  tell.pause(3)
  const hold = { call: 'put pack', nth: 1, durationMs: 10 * SECOND_MS }
  tell.on(0)
  tell.compact(0, { hold })
  tell.on(1)
  const draw = tell.random.below(3)
  if (draw > 0) tell.collect(1, 1, 200)
  if (draw < 2) tell.compact(SECOND_MS)
  tell.download(root, {}, SECOND_MS)
  tell.on(undefined)
  tell.pause()
  tell.download(root)
  tell.pause(3)
  tell.collect(1)
  tell.compact()
  tell.download(root)
}

/** A project is removed and swept while somebody finds out what a root leads to. */
export function readsWhileRemoved(tell: Teller): void {
  const { leaves, root } = treeOf(tell)
  uploadEach(tell, leaves, root)
  tell.pause()
  tell.on(0)
  tell.restart()
  const hold = { call: 'getMany k', nth: tell.random.between(1, 2), durationMs: 5 * SECOND_MS }
  tell.download(root, { hold }, SECOND_MS)
  tell.on(undefined)
  tell.remove(undefined, tell.random.between(60, 200))
  tell.pause(0, 10 * SECOND_MS)
}

/** A server that starts applies what was left behind, while its project is removed and swept. */
export function appliesWhileRemoved(tell: Teller): void {
  const object = tell.object('left', { isLarge: true })
  const keeper = tell.object('keeper')
  tell.on(1)
  tell.upload([keeper])
  tell.on(0)
  tell.look(keeper)
  tell.pause()
  const hold = { nth: 1, durationMs: 5 * SECOND_MS }
  tell.upload([object], { crashAfterMs: SECOND_MS, hold: { ...hold, call: 'commit o' } })
  tell.download(keeper, { form: 'records', hold: { ...hold, call: 'read pack' } }, 2 * SECOND_MS)
  tell.on(1)
  tell.remove(undefined, 2 * SECOND_MS)
  tell.on(undefined)
  tell.pause(0, 10 * SECOND_MS)
}

/** A crash cuts a tombstone short, and an operator has the records written anew before anybody else sees it. */
export function reindexesWhatWasCut(tell: Teller): void {
  const object = tell.object('gone')
  tell.on(0)
  tell.upload([object])
  tell.pause()
  const hold = { call: 'put chunk tombstone', nth: 1, durationMs: 5 * SECOND_MS }
  tell.remove(SECOND_MS, 0, { hold })
  tell.reindex(2 * SECOND_MS)
  tell.on(undefined)
  if (tell.random.chance(0.5)) tell.upload([object])
}

/** The disk is full while an operator has the records written anew. */
export function reindexesOnFullDisk(tell: Teller): void {
  const { leaves, root } = treeOf(tell)
  uploadEach(tell, leaves, root)
  tell.pause()
  // The records of packs are written by then, or the ids in them.
  tell.reindex(0, { fullAfterCalls: tell.random.between(20, 36) })
  tell.pause()
  tell.look(...leaves)
}
