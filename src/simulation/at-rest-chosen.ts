import { amountOf, closureOf, sameAmount, type Texts } from './amounts.ts'
import { condemn, unreferenced } from './choosing.ts'
import type { Destination } from './client.ts'
import { collect, exportAll, lookAtPins, restore } from './keeper.ts'
import { childrenReader } from './models.ts'
import { Violation } from './oracle.ts'
import type { SimulatedProcess } from './process.ts'
import type { Random } from './random.ts'

/** A collection to which every live object is young. */
const ALL_YOUNG_EPOCHS = 100_000
const UNKNOWN_ID = 'nobody-brought-this'

interface Parts {
  readonly random: Random
  readonly pageBytes: number
  readonly clients: SimulatedProcess
  /** Everything is old afterwards. */
  readonly age: () => Promise<void>
}

/**
 * Chooses objects of a project at rest. What neither a root nor another object leads to is condemned, and nothing else;
 * then it is restored, or freed for good.
 */
export async function chooseAtRest(to: Destination, parts: Parts): Promise<void> {
  const { random, age, pageBytes, clients } = parts
  const holds = (): Promise<Texts> => exportAll(to, pageBytes, clients)
  const all = await holds()
  if (all.size === 0) return
  const pins = await lookAtPins(to)
  await checkList(all, closureOf(all, pins), random, to)
  const share = random.pick([0.1, 0.5, 1])
  const ids = [...all.keys()].filter(() => random.chance(share)).slice(0, 999)
  const below = closureOf(all, ids)
  const others = [...all.keys()].filter((id) => !below.has(id))
  const kept = closureOf(all, [...pins, ...others])
  const gone = new Map([...all].filter(([id]) => !kept.has(id)))
  const left = new Map([...all].filter(([id]) => kept.has(id)))
  await age()
  for (const isDryRun of [true, false]) {
    const report = await condemn({ ids: [...ids, UNKNOWN_ID], graceEpochs: 1, isDryRun }, to)
    sameAmount('a choice condemns', report?.condemned, amountOf(gone))
    if (report?.missing !== 1 || report.kept !== ids.filter((id) => kept.has(id)).length)
      throw new Violation(`of ${ids.length} chosen objects ${report?.kept} are kept, and ${report?.missing} not found`)
  }
  await checkLive('a choice', left, all, to)
  if (random.chance(0.5)) {
    await restore(to)
    await checkLive('an undo', all, all, to)
    return
  }
  await age()
  for (const isDryRun of [true, false]) {
    const report = await collect({ graceEpochs: ALL_YOUNG_EPOCHS, undoEpochs: 1, isDryRun }, to)
    sameAmount('a collection of chosen objects frees', report?.freed, amountOf(gone))
  }
  await restore(to)
  same('after chosen objects were freed', await holds(), left)
}

/** What is condemned is read, and is not held for those who ask before an upload. */
async function checkLive(after: string, live: Texts, all: Texts, { project }: Destination): Promise<void> {
  const held = await project.has([...all.keys()])
  for (const id of all.keys())
    if (held.has(id) !== live.has(id))
      throw new Violation(`after ${after} ${id} is ${held.has(id) ? '' : 'not '}held; it should be the other way round`)
}

/** The list of a project at rest is exact. */
async function checkList(all: Texts, rooted: ReadonlySet<string>, random: Random, to: Destination): Promise<void> {
  const childrenOf = childrenReader()
  const referred = new Set([...all.values()].flatMap((text) => childrenOf(text)))
  const expected = new Map<string, string>()
  for (const [id, text] of all)
    if (!rooted.has(id)) expected.set(id, `${Buffer.byteLength(text)} bytes${referred.has(id) ? '' : ', a top'}`)
  const listed = await unreferenced({ pageObjects: random.pick([3, 1_000]), topsOnly: false }, to)
  const seen = new Map(
    listed.map(({ id, jsonBytes, isTop, state }) => [
      id,
      `${jsonBytes} bytes${isTop ? ', a top' : ''}${state === 'condemned' ? ', condemned' : ''}`,
    ]),
  )
  if (seen.size !== listed.length) throw new Violation('an object is listed twice as unreferenced')
  same('in the list of unreferenced objects', seen, expected)
}

function same(when: string, texts: Texts, expected: Texts): void {
  for (const id of new Set([...texts.keys(), ...expected.keys()]))
    if (texts.get(id) !== expected.get(id))
      throw new Violation(`${when} ${id} is ${texts.get(id) ?? 'absent'}; it should be ${expected.get(id) ?? 'absent'}`)
}
