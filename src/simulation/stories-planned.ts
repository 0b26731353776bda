import type { PlannedObject } from './models.ts'
import type { Teller } from './story.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
/** A server frees objects, in a commit that lowers the totals, and dies before the next one notes that in their packs. */
const CUT_OFF = { sleep: { afterCall: 'commit t', durationMs: MINUTE_MS }, crashAfterMs: 5_000 } as const

/**
 * A plan outlives what it names: the root comes again, and what was below it does not. In some runs the server dies
 * between freeing that and noting it in the pack, or earlier between a merge and dropping the plan.
 */
export function plannedAndFreed(tell: Teller): void {
  const isCutOff = tell.random.fork('cut off').chance(0.5)
  const leaf = tell.object('leaf')
  const root = tell.rootOfClaims('root', [leaf])
  tell.root(root)
  tell.keeper()
  const draw = tell.random.fork('before').below(4)
  if (draw === 0) return freedElsewhere(tell, leaf, root)
  tell.upload([leaf, root])
  tell.pause()
  tell.download(root)
  if (draw === 1) mergedBesidePlan(tell)
  tell.pause(3)
  tell.collect(1)
  tell.pause(3)
  tell.collect(1, 1, 0, isCutOff ? CUT_OFF : {})
  tell.pause()
  tell.look(leaf, root)
  tell.look(leaf, root)
  if (isCutOff) tell.list(leaf)
  tell.pause()
  tell.upload([root])
  tell.pause()
  tell.download(root)
}

/** A server merges packs, and dies before it drops the plans that name them. */
function mergedBesidePlan(tell: Teller): void {
  tell.pause()
  // The commit that condemns the blob of the plan.
  const hold = { call: 'commit c', nth: 1, durationMs: MINUTE_MS }
  tell.compact(0, { hold, crashAfterMs: 10 * SECOND_MS })
  tell.pause(0, 2 * MINUTE_MS)
}

/** One server frees what is below a root, and dies before it notes that. Another one keeps the plan of the root. */
function freedElsewhere(tell: Teller, leaf: PlannedObject, root: PlannedObject): void {
  tell.upload([leaf])
  tell.pause(3)
  tell.collect(1)
  tell.pause()
  tell.upload([root])
  tell.pause(3)
  tell.on(1)
  tell.download(root)
  tell.pause()
  tell.download(root)
  tell.pause()
  tell.on(0)
  tell.collect(1, 1, 0, CUT_OFF)
  tell.pause()
  tell.on(1)
  tell.list(leaf)
  tell.pause()
  tell.download(root)
}
