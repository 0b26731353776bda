import { isDeepStrictEqual } from 'node:util'
import { readRecords } from '../operations/read-object.ts'
import type { CollectionReport } from '../object/collection.ts'
import type { ObjectCursor } from '../object/graph-store.ts'
import type { Pin } from '../object/roots.ts'
import { addOnce, type Destination } from './client.ts'
import type { PlannedCollection, PlannedCompaction, PlannedPin, PlannedUnpin } from './operations.ts'
import { Violation } from './oracle.ts'
import type { SimulatedProcess } from './process.ts'
import { codeOf } from './expectations.ts'

const PAGE_RETRY_MS = 100

/** Pins the root, and tells the book. */
export async function pin(
  { rootId, index }: PlannedPin,
  { life, oracle, book, projectId }: Destination,
): Promise<void> {
  const root = book.begin(rootId, `pin ${index}`)
  const work = pinsOf(life).add(projectId, { rootObjectId: rootId, name: root.name })
  const told = work.then(
    ({ id }) => {
      root.pinId = id
      root.outcome = 'acknowledged'
    },
    (error: unknown) => {
      if (codeOf(error) === 'objects_missing') root.outcome = 'refused'
      throw error
    },
  )
  await told.catch((error: unknown) => {
    if (codeOf(error) !== 'objects_missing') throw error
  })
  oracle.end(root)
  if (root.outcome === 'refused') oracle.sawNot(rootId, root)
  else oracle.saw(rootId, undefined, root)
}

/** Takes one of the known pins back, and looks at the others. */
export async function unpin({ draw }: PlannedUnpin, { life, oracle, book, projectId }: Destination): Promise<void> {
  const { known } = book
  if (known.length > 0) {
    const root = known[draw % known.length]
    const release = { ...oracle.begin(), isAcknowledged: false }
    root.release = release
    try {
      await pinsOf(life).remove(projectId, root.pinId as string)
      release.isAcknowledged = true
    } catch (error) {
      // It went with its project, or with an earlier try.
      if (codeOf(error) !== 'not_found' || !book.mayBeGone(root, release)) throw error
    } finally {
      oracle.end(release)
    }
  }
  await lookAtPins({ life, oracle, book, projectId })
}

export async function lookAtPins({
  life,
  oracle,
  book,
  projectId,
}: Pick<Destination, 'life' | 'oracle' | 'book' | 'projectId'>): Promise<readonly Pin[]> {
  const span = oracle.begin()
  const pins = await pinsOf(life).list(projectId)
  oracle.end(span)
  book.saw(pins, span)
  return pins
}

/** Merges the packs of the project, if it holds anything. */
export async function compact({ all }: Pick<PlannedCompaction, 'all'>, to: Destination): Promise<void> {
  await unlessEmpty(to, () => to.project.compact({ all, signal: to.signal }))
}

/** Condemns what no root reaches, frees what was condemned long enough, or counts both. */
export async function collect(
  { graceEpochs, undoEpochs, isDryRun }: Pick<PlannedCollection, 'graceEpochs' | 'undoEpochs' | 'isDryRun'>,
  to: Destination,
): Promise<CollectionReport | undefined> {
  const { oracle, life } = to
  const collection = { ...oracle.begin(), graceEpochs, undoEpochs }
  if (!isDryRun) oracle.collections.begin(collection)
  const end = (): void => {
    if (collection.end === Infinity) oracle.end(collection)
  }
  void life.over.then(end)
  const { epochMs = 1 } = life.context.epochs ?? {}
  const settings = { olderThanMs: graceEpochs * epochMs, undoMs: undoEpochs * epochMs, dryRun: isDryRun }
  return unlessEmpty(to, () => to.project.collect({ ...settings, signal: to.signal })).finally(end)
}

/** Undoes what collections condemned. */
export async function restore(to: Destination): Promise<void> {
  const { oracle, life } = to
  const restoration = { ...oracle.begin(), isAcknowledged: false }
  oracle.collections.beginRestoration(restoration)
  const end = (): void => {
    if (restoration.end === Infinity) oracle.end(restoration)
  }
  void life.over.then(end)
  const restored = unlessEmpty(to, () => to.project.restoreCollected({ signal: to.signal }))
  await restored.finally(end)
  restoration.isAcknowledged = true
}

/** `undefined` for a project that may be empty. */
export async function unlessEmpty<T>({ oracle }: Destination, work: () => Promise<T>): Promise<T | undefined> {
  const span = oracle.begin()
  try {
    return await work()
  } catch (error) {
    oracle.end(span)
    if (codeOf(error) === 'not_found' && !oracle.ids.some((id) => oracle.isThere(id, span))) return undefined
    throw error
  }
}

/** The texts of each page of an export, from its beginning to what was there when it began. */
export async function* pagesOf(
  { life, projectId, signal }: Pick<Destination, 'life' | 'projectId' | 'signal'>,
  textBytesMax: number,
  clients: SimulatedProcess,
): AsyncGenerator<Map<string, string>> {
  const { pager } = life.graphs
  if (pager === undefined) throw new Violation('the service cannot list its objects')
  let after: ObjectCursor | undefined
  let end: ObjectCursor | undefined
  for (;;) {
    const place = { ...(after === undefined ? {} : { after }), ...(end === undefined ? {} : { until: end }) }
    const page = await pager.page(projectId, { textBytesMax, signal, ...place })
    if (page === undefined) return
    const texts = new Map<string, string>()
    try {
      const records = readRecords(page.selection.lines({ signal }), signal, life.environment)
      for await (const batch of records)
        for (const { id, json } of batch) addOnce(texts, id, Buffer.from(json).toString())
    } finally {
      page.selection.release()
    }
    if (texts.size !== page.selection.objects)
      throw new Violation(`a page says that it has ${page.selection.objects} objects, and has ${texts.size}`)
    yield texts
    end ??= page.end
    after = page.next
    if (isDeepStrictEqual(after, end)) return
    if (texts.size === 0) await new Promise<void>((resolve) => void clients.setTimer(PAGE_RETRY_MS, resolve))
  }
}

/** Exports everything, and tells the oracle. */
export async function exportAll(
  to: Destination,
  textBytesMax: number,
  clients: SimulatedProcess,
): Promise<ReadonlyMap<string, string>> {
  const { oracle } = to
  const span = oracle.begin()
  const all = new Map<string, string>()
  for await (const texts of pagesOf(to, textBytesMax, clients))
    for (const [id, text] of texts) {
      if (all.has(id)) throw new Violation(`${id} was exported twice`)
      all.set(id, text)
    }
  oracle.end(span)
  for (const [id, text] of all) oracle.saw(id, text, span)
  for (const id of oracle.ids) if (!all.has(id)) oracle.sawNotHeld(id, span)
  return all
}

function pinsOf({ context }: Destination['life']): NonNullable<Destination['life']['context']['pins']> {
  const { pins } = context
  if (pins === undefined) throw new Violation('the service keeps no pins')
  return pins
}
