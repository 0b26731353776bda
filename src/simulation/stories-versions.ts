import type { PlannedObject } from './models.ts'
import type { PlannedCompaction } from './operations.ts'
import type { Random } from './random.ts'
import { type Story, Teller } from './story.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
/** Random bytes of a text. A merge stores versions of a line of 8 KB or more as deltas. */
const LONG_TEXT_BYTES = 7_500
/** A version differs from the one before in so many characters. */
const CHANGED_CHARACTERS = 40
/** More versions than deltas may be based on each other. */
const MANY_VERSIONS = 37
/** Packs that were merged may be merged again after so many epochs. */
const MERGE_AGE_EPOCHS = 3
/** A collection to which all that lives is young, so that it only frees. */
const FREES_ONLY_EPOCHS = 1_000

/** Long roots that differ in a few characters, and refer to the same object. */
function versionsOf(tell: Teller, leaf: PlannedObject, count: number): PlannedObject[] {
  const text = Buffer.from(tell.random.fork('text').bytes(LONG_TEXT_BYTES)).toString('base64')
  return Array.from({ length: count }, (_, at) => {
    const place = at * CHANGED_CHARACTERS
    const changed = `version ${at}`.padEnd(CHANGED_CHARACTERS, '-')
    const own = text.slice(0, place) + changed + text.slice(place + CHANGED_CHARACTERS)
    return tell.object(`version${at}`, { text: own, children: [leaf] })
  })
}

/** Its server dies or stands still at some moment of the merge, or neither. */
function disturbedMerge({ random }: Teller): Partial<PlannedCompaction> {
  const draw = random.below(5)
  if (draw === 0) return { crashAfterMs: random.between(4, 120) }
  if (draw === 1) return { sleep: { afterCall: 'commit', durationMs: MINUTE_MS } }
  const call = random.pick(['put publishes', 'commit h', 'commit o', 'commit k'] as const)
  return draw === 2 ? { hold: { call, nth: 1, durationMs: MINUTE_MS }, crashAfterMs: 2 * SECOND_MS } : {}
}

/** Merges, and again after a crash; reads some versions, also as deltas on others. */
function merged(tell: Teller, versions: readonly PlannedObject[], patienceMs = 10 * MINUTE_MS): void {
  tell.compact(0, { ...disturbedMerge(tell), patienceMs })
  tell.pause(MERGE_AGE_EPOCHS, 2 * MINUTE_MS)
  tell.compact()
  tell.pause()
  const [one, other] = tell.random.shuffled(versions)
  tell.download(one)
  tell.download(other, { form: tell.random.pick(['deltas', 'records', 'gzip']), haveRootId: one.id }, 200)
  tell.list(...versions)
  tell.pause()
}

/** The older versions of a model with a long root, of which a merge makes deltas. Some are freed, and a newer one comes. */
function mergedAsDeltas(tell: Teller): void {
  const leaf = tell.object('leaf')
  const count = tell.random.fork('count').pick([4, 5, 7, MANY_VERSIONS])
  const versions = versionsOf(tell, leaf, count)
  for (const version of versions) tell.root(version)
  const older = versions.slice(0, -2)
  const [newest, next] = versions.slice(-2)
  if (count < MANY_VERSIONS) for (const version of older) tell.upload([leaf, version])
  else tell.upload([leaf, ...older])
  tell.upload([newest])
  tell.pause()
  // What a pin leads to comes first in a merged pack. The others are the rest.
  tell.pin(newest)
  tell.pause(MERGE_AGE_EPOCHS)
  merged(tell, [...older, newest])
  // Others are based on these.
  const freed = tell.random.shuffled(older).slice(0, tell.random.between(1, 2))
  tell.choose(freed)
  tell.pause(MERGE_AGE_EPOCHS)
  tell.collect(FREES_ONLY_EPOCHS)
  tell.pause()
  tell.upload([next])
  tell.pause()
  tell.pin(next)
  tell.pause()
  merged(tell, [...older.filter((version) => !freed.includes(version)), newest, next])
}

/** A story of the versions of one long object. */
export function planVersionsStory(random: Random, projectId: string): Story {
  const tell = new Teller(random, projectId, 'v')
  mergedAsDeltas(tell)
  return tell.story
}
