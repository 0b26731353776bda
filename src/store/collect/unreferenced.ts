import { createHash } from 'node:crypto'
import { StowageError } from '../../errors.ts'
import { ByteCache } from '../../memory/byte-cache.ts'
import type {
  ReadRoots,
  UnreferencedCursor,
  UnreferencedObject,
  UnreferencedOptions,
  UnreferencedPage,
} from '../../object/collection.ts'
import type { GraphRoot } from '../../object/roots.ts'
import { Bitmap } from '../bytes/bitmap.ts'
import { withWalk } from '../closure/with-walk.ts'
import { tableEntry, textBytesOf } from '../pack/pack-format.ts'
import { packIn } from '../records/pack-catalog.ts'
import type { ProjectView } from '../records/project-view.ts'
import { pendingPacks, viewProject } from '../records/projects.ts'
import { isHere, type Marks, marksOf, placesIn, reachRoots } from './mark.ts'
import type { CollectParts } from './parts.ts'
import { lookedUp, membersOf, packsOf, type StoredPack } from './project-packs.ts'

/** Marks that are kept for the next page. */
const CACHE_BYTES = 4_194_304
const BYTES_PER_PACK = 256

interface Listing {
  /** Objects that a root leads to. */
  readonly reached: Marks
  /** Objects that another one refers to or claims. */
  readonly referred: Marks
}

/** Lists the objects that no root leads to. What the pages of one state of a project need is found once. */
export class UnreferencedLists {
  readonly #parts: CollectParts
  readonly #listings = new ByteCache<Listing>(CACHE_BYTES, listingBytes)

  constructor(parts: CollectParts) {
    this.#parts = parts
  }

  async page(
    projectId: string,
    readRoots: ReadRoots,
    options: UnreferencedOptions,
  ): Promise<UnreferencedPage | undefined> {
    const { signal, after, limit, topsOnly = false } = options
    const { records, epochs } = this.#parts
    const { number: epoch } = await epochs.current()
    const project = await viewProject(records, projectId, signal)
    if (project === undefined) return undefined
    if (after !== undefined && after.generation !== project.generation)
      throw new StowageError('conflict', 'the project was removed since the page before; begin again without a cursor')
    const roots = await readRoots()
    // The objects of these appear without a change of what the key names.
    const pending = new Set(await pendingPacks(records, project, { signal }))
    const list = (): Promise<Listing> => this.#list(project, roots, signal)
    const listing = pending.size > 0 ? await list() : await this.#listings.get(keyOf(project, roots), list)
    const objects: UnreferencedObject[] = []
    for await (const pack of packsOf(records, project, { signal, from: after?.sequence ?? 0 })) {
      if (pending.has(pack.sequence)) continue
      const first = pack.sequence === after?.sequence ? after.ordinal + 1 : 0
      for await (const { ordinal, object } of this.#unreferencedIn(project, pack, listing, { first, epoch, signal })) {
        if (topsOnly && !object.isTop) continue
        objects.push(object)
        if (objects.length < limit) continue
        const next: UnreferencedCursor = { generation: project.generation, sequence: pack.sequence, ordinal }
        return { objects, next }
      }
    }
    return { objects, next: undefined }
  }

  async #list(project: ProjectView, roots: readonly GraphRoot[], signal: AbortSignal): Promise<Listing> {
    const { records, budget } = this.#parts
    const party = { principal: '', projectId: project.projectId }
    const memory = budget.open({ signal, party })
    try {
      const reached = await withWalk(this.#parts, project, { signal, party }, async (walk) => {
        await reachRoots(this.#parts, project, walk, roots, signal)
        return marksOf(walk, memory)
      })
      const referred = await withWalk(this.#parts, project, { signal, party }, async (walk) => {
        for await (const pack of packsOf(records, project, { signal })) {
          const { sequence, record } = pack
          const held = record.owned ?? Bitmap.full(record.objects)
          for (const ordinals of [held, await this.#heldOfCondemned(project, pack, signal)])
            await walk.reach(placesIn(sequence, membersOf(ordinals)), { areReached: false })
        }
        return marksOf(walk, memory)
      })
      return { reached, referred }
    } finally {
      memory.release()
    }
  }

  /** Without objects that were freed, or that lie elsewhere: nothing of them refers to anything. */
  async #heldOfCondemned(
    project: ProjectView,
    { sequence, record }: StoredPack,
    signal: AbortSignal,
  ): Promise<Bitmap | undefined> {
    const { condemned, objects } = record
    if (condemned === undefined || condemned.count === 0) return undefined
    const { records, catalog } = this.#parts
    const held = Bitmap.empty(objects)
    await catalog.withTables(await packIn(records, project, sequence, record), async (tables) => {
      for await (const some of lookedUp(records, project, tables, membersOf(condemned), signal))
        for (const { ordinal, record: object } of some) if (isHere(object, sequence, ordinal)) held.add(ordinal)
    })
    return held
  }

  async *#unreferencedIn(
    project: ProjectView,
    { sequence, record }: StoredPack,
    { reached, referred }: Listing,
    { first, epoch, signal }: { readonly first: number; readonly epoch: number; readonly signal: AbortSignal },
  ): AsyncGenerator<{ readonly ordinal: number; readonly object: UnreferencedObject }> {
    const wanted = Bitmap.full(record.objects).without(reached.get(sequence) ?? Bitmap.empty(0))
    const { owned, condemned } = record
    const candidates = function* (): Generator<number> {
      for (const ordinal of membersOf(wanted))
        if (ordinal >= first && (owned?.has(ordinal) === true || condemned?.has(ordinal) === true)) yield ordinal
    }
    const tables = await this.#parts.catalog.tables(await packIn(this.#parts.records, project, sequence, record))
    for await (const some of lookedUp(this.#parts.records, project, tables, candidates(), signal)) {
      for (const { ordinal, record: object } of some) {
        if (!isHere(object, sequence, ordinal)) continue
        yield {
          ordinal,
          object: {
            id: Buffer.from(tableEntry(tables.ids, ordinal)).toString('utf8'),
            jsonBytes: textBytesOf(tables, ordinal),
            state: object.state === 'live' ? 'unreferenced' : 'condemned',
            ageEpochs: Math.max(0, epoch - object.epoch),
            isTop: referred.get(sequence)?.has(ordinal) !== true,
          },
        }
      }
    }
  }
}

function listingBytes({ reached, referred }: Listing): number {
  let bytes = 0
  for (const marks of [reached, referred])
    for (const bitmap of marks.values()) bytes += BYTES_PER_PACK + bitmap.bytes.length
  return Math.max(1, bytes)
}

function keyOf({ projectId, generation, sequence, layout }: ProjectView, roots: readonly GraphRoot[]): string {
  const hash = createHash('sha256')
  for (const { rootObjectId } of roots) hash.update(JSON.stringify(rootObjectId))
  return `${generation} ${sequence} ${layout} ${hash.digest('hex')} ${projectId}`
}
