import { amountOf } from './amounts.ts'
import type { PlannedObject } from './models.ts'
import type { Random } from './random.ts'
import { type Story, Teller } from './story.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
/** A collection to which all that lives is young, so that it only frees. */
const FREES_ONLY_EPOCHS = 1_000
/** Bytes of a text of which few are left when it is compressed. */
const LONG_TEXT_BYTES = 600

function bytesOf(objects: readonly PlannedObject[]): number {
  return amountOf(new Map(objects.map(({ id, json }) => [id, json]))).jsonBytes
}

/** A chosen object goes with what is below it alone. What it is needed for comes before it is freed, in most runs. */
function chosenBesideOthers(tell: Teller): void {
  const shared = tell.object('shared')
  const own = tell.object('own')
  const chosen = tell.object('chosen', { children: [shared, own] })
  const other = tell.object('other', { children: [shared] })
  tell.root(other)
  tell.root(chosen)
  if (tell.random.chance(0.5)) tell.keeper()
  tell.upload([shared, own, chosen, other])
  tell.pause(3)
  if (tell.random.chance(0.3)) tell.choose([shared])
  tell.choose([chosen])
  tell.pause()
  tell.look(shared, own, chosen, other)
  tell.pause()
  const draw = tell.random.below(5)
  if (draw === 0) tell.upload([tell.object('newcomer', { children: [own] })])
  if (draw === 1) tell.upload([own, chosen], { asks: true })
  if (draw === 2) tell.restore()
  if (draw === 3) tell.pin(chosen)
  tell.pause()
  if (draw < 4) tell.look(own, chosen)
  tell.pause(2)
  tell.collect(FREES_ONLY_EPOCHS)
  tell.pause()
  tell.list(shared, own, chosen, other)
}

/** Somebody chooses what roots or young objects lead to. */
function chosenThoughNeeded(tell: Teller): void {
  const old = tell.object('old')
  const young = tell.object('young', { children: [old] })
  const leaf = tell.object('leaf')
  const root = tell.object('root', { children: [leaf] })
  tell.root(root)
  tell.root(young)
  tell.upload([old, leaf, root])
  tell.pause()
  if (tell.random.chance(0.7)) tell.pin(root)
  tell.pause(5)
  tell.upload([young])
  tell.pause()
  tell.choose([old, young, leaf, root], { graceEpochs: 3, share: tell.random.pick([0, 1]) })
  tell.pause()
  tell.look(old, young, leaf, root)
  if (tell.random.chance(0.5)) tell.unpin()
  tell.pause(3)
  tell.choose([], { share: 1, pageObjects: tell.random.pick([1, 100]) })
  tell.pause(3)
  tell.collect(FREES_ONLY_EPOCHS)
  tell.pause()
  tell.list(old, young, leaf, root)
}

/** Objects are chosen while somebody uploads what refers to them, or reads it, and perhaps while packs are merged. */
function chosenWhileUsed(tell: Teller): void {
  const leaves = [tell.object('one'), tell.object('two')]
  const root = tell.object('root', { children: leaves })
  tell.root(root)
  if (tell.random.chance(0.5)) tell.keeper()
  for (const leaf of leaves) tell.upload([leaf, tell.object(`beside ${leaf.id}`)])
  tell.pause(3)
  const calls = ['getMany o', 'range k', 'commit k', 'commit o'] as const
  const hold = { call: tell.random.pick(calls), nth: tell.random.between(1, 3), durationMs: 2 * SECOND_MS }
  tell.on(0)
  tell.choose(leaves, tell.random.chance(0.6) ? { hold, share: tell.random.pick([0, 1]) } : {})
  tell.on(1)
  if (tell.random.chance(0.4)) tell.compact(tell.random.below(20))
  if (tell.random.chance(0.3)) tell.choose([leaves[0]], {}, tell.random.below(20))
  tell.upload([...leaves, root], { asks: true }, tell.random.below(60))
  if (tell.random.chance(0.3)) tell.pin(root, tell.random.below(60))
  tell.download(root, {}, tell.random.below(20))
  tell.on(undefined)
  tell.pause()
  tell.look(...leaves, root)
  tell.upload([...leaves, root], { asks: true })
  tell.pause()
  tell.look(...leaves, root)
  tell.pause(2)
  tell.collect(FREES_ONLY_EPOCHS)
  tell.pause()
  tell.list(...leaves, root)
}

/** A list is made while a pack is committed and not visible yet, and again when it is. */
function listedWhileApplied(tell: Teller): void {
  const late = Array.from({ length: 10 }, (_, at) => tell.object(`late${at}`))
  const root = tell.object('root', { children: late })
  tell.root(root)
  tell.upload([root])
  tell.pause()
  tell.pin(root)
  tell.pause()
  tell.on(0)
  tell.upload(late, { sleep: { afterCall: 'commit', durationMs: 20 * SECOND_MS } })
  tell.on(1)
  tell.choose([], {}, SECOND_MS)
  tell.pause(0, MINUTE_MS)
  tell.choose([], { share: 1 })
  tell.pause()
  tell.list(...late)
}

/** Many clients upload at once, and not all of it may be held. */
function racedForQuota(tell: Teller): void {
  const count = tell.random.between(6, 12)
  const size = tell.random.between(1, 3)
  const uploads = Array.from({ length: count }, (_, at) =>
    Array.from({ length: size }, (__, part) => tell.object(`upload${at}.${part}`)),
  )
  const all = uploads.flat()
  const share = tell.random.between(2, 8) / 10
  if (tell.random.chance(0.5)) tell.mayHold({ objectsMax: Math.ceil(all.length * share) })
  else tell.mayHold({ jsonBytesMax: Math.ceil(bytesOf(all) * share) })
  tell.root(all[0])
  if (tell.random.chance(0.5)) tell.upload(uploads[0])
  tell.pause()
  for (const objects of uploads) tell.upload(objects, { isLengthKnown: tell.random.chance(0.5) }, tell.random.below(4))
  tell.pause()
  for (const objects of tell.random.shuffled(uploads).slice(0, 3)) tell.upload(objects, { isLengthKnown: true })
  tell.pause()
  tell.look(...all)
}

/** An upload that fails frees what it had reserved: the next one fits. */
function reservedInVain(tell: Teller): void {
  const text = 'x'.repeat(LONG_TEXT_BYTES)
  const first = tell.object('first')
  const large = [tell.object('large', { text }), tell.object('small')]
  const next = tell.object('next', { text: text.slice(LONG_TEXT_BYTES / 4) })
  tell.root(first)
  // Compressed, the large one seems to fit.
  const isZipped = tell.random.chance(0.5)
  tell.mayHold({
    objectsMax: isZipped ? 10 : 2,
    jsonBytesMax: bytesOf([first, isZipped ? next : large[0], ...(isZipped ? [] : [large[1]])]) + 40,
  })
  tell.upload([first])
  tell.pause()
  tell.on(0)
  for (let left = tell.random.between(1, 3); left > 0; left--)
    tell.upload(large, { isLengthKnown: true, isZipped, ...(tell.random.chance(0.3) ? { isBroken: true } : {}) })
  tell.pause()
  tell.upload([next], { isLengthKnown: true })
  tell.pause()
  tell.look(first, ...large, next)
}

/** A project is full; something is collected or it is removed, and as much comes again. */
function freedForQuota(tell: Teller): void {
  const keeper = tell.keeper()
  const old = Array.from({ length: tell.random.between(2, 4) }, (_, at) => tell.object(`old${at}`))
  const next = old.map((_, at) => tell.object(`new${at}`))
  tell.root(keeper)
  const [objectsMax, jsonBytesMax] = [1 + old.length, bytesOf([keeper, ...old])]
  tell.mayHold(tell.random.pick([{ objectsMax }, { jsonBytesMax }, { objectsMax, jsonBytesMax }]))
  tell.upload(old)
  tell.pause()
  tell.upload(next)
  tell.pause(3)
  const draw = tell.random.below(3)
  if (draw === 0) tell.collect(1)
  else tell.choose(draw === 1 ? old : [], { share: 1 })
  tell.pause(tell.random.pick([0, 3]))
  // Condemned objects count.
  tell.upload(next, { isLengthKnown: tell.random.chance(0.5) })
  tell.pause(3)
  tell.collect(FREES_ONLY_EPOCHS)
  tell.pause()
  tell.list(...old)
  tell.pause()
  if (tell.random.chance(0.3)) tell.remove(undefined)
  tell.pause()
  for (const one of next) tell.upload([one], { isLengthKnown: tell.random.chance(0.5) }, tell.random.below(4))
  tell.pause()
  tell.look(keeper, ...next)
}

const STORIES_OF_SPACE: readonly ((tell: Teller) => void)[] = [
  chosenBesideOthers,
  chosenThoughNeeded,
  chosenWhileUsed,
  listedWhileApplied,
  racedForQuota,
  reservedInVain,
  freedForQuota,
]

/** A story of quotas or of chosen objects. */
export function planSpaceStory(random: Random, projectId: string): Story {
  const at = random.below(STORIES_OF_SPACE.length)
  const tell = new Teller(random, projectId, `y${at.toString(36)}`)
  STORIES_OF_SPACE[at](tell)
  return tell.story
}
