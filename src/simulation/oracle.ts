import type { UnreferencedObject } from '../object/collection.ts'
import { CollectionBook, type CollectionParts } from './collections.ts'
import { type ChildrenOf, childrenReader } from './models.ts'
import type { Span, Upload } from './span.ts'

export interface Removal extends Span {
  isAcknowledged: boolean
}

/** What all projects share. */
export interface OracleClock extends Pick<CollectionParts, 'epochsMax'> {
  moment: number
  readonly nowMs: () => number
}

interface Sighting extends Span {
  text: string | undefined
}

/** A guarantee was violated. */
export class Violation extends Error {
  override readonly name = 'Violation'
}

/**
 * The possible answers of a project, from the actions of clients and their answers alone: acknowledged objects are
 * present and whole, an upload is present as a whole or not at all, the first text of an id wins, and a download is the
 * closure of its root at some moment between its start and its end.
 */
export class ProjectOracle {
  /** What collections may have taken. */
  readonly collections: CollectionBook
  readonly childrenOf: ChildrenOf = childrenReader()
  readonly #clock: OracleClock
  readonly #uploads: Upload[] = []
  /** The uploads that brought an object. */
  readonly #uploadsById = new Map<string, Upload[]>()
  readonly #removals: Removal[] = []
  readonly #sightings = new Map<string, Sighting[]>()
  /** When an object could not be read. */
  readonly #absences = new Map<string, Span[]>()
  readonly #rootsIn: CollectionParts['rootsIn']
  #isLost = false

  /** `clock` counts the moments of all projects. `rootsIn` names the roots that are kept for certain in a span. */
  constructor(clock: OracleClock, rootsIn: CollectionParts['rootsIn']) {
    this.#clock = clock
    this.#rootsIn = rootsIn
    const { epochsMax } = clock
    this.collections = new CollectionBook({
      uploads: () => this.#uploads,
      uploadsOf: (id) => this.#uploadsOf(id),
      childrenOf: this.childrenOf,
      moment: () => clock.moment,
      rootsIn,
      isRemovedWithin: (earlier, later) => this.isRemovedWithin(earlier, later),
      epochsMax,
    })
  }

  /** Everything that anybody tried to upload. */
  get uploads(): readonly Upload[] {
    return this.#uploads
  }

  /** Ids of everything that anybody tried to upload. */
  get ids(): readonly string[] {
    return [...this.#uploadsById.keys()]
  }

  begin(): Span {
    return { start: this.#clock.moment++, end: Infinity, startMs: this.#clock.nowMs(), endMs: Infinity }
  }

  end(span: Span): void {
    span.end = this.#clock.moment++
    span.endMs = this.#clock.nowMs()
  }

  beginUpload(texts: ReadonlyMap<string, string>): Upload {
    const upload: Upload = { ...this.begin(), texts, outcome: 'unknown' }
    this.#uploads.push(upload)
    for (const id of texts.keys()) {
      const known = this.#uploadsById.get(id)
      if (known === undefined) this.#uploadsById.set(id, [upload])
      else known.push(upload)
    }
    return upload
  }

  beginRemoval(): Removal {
    const removal: Removal = { ...this.begin(), isAcknowledged: false }
    this.#removals.push(removal)
    return removal
  }

  /** Whether everybody who reads the object in this span must find it. */
  isThere(id: string, span: Span): boolean {
    if (this.#isLost) return false
    const isSafe = (evidence: Span, condemnedAfter?: number): boolean =>
      evidence.end < span.start &&
      !this.isRemovedWithin(evidence, span) &&
      !this.collections.mayBeFreed(id, evidence, span, condemnedAfter)
    return (
      this.#uploadsOf(id).some((upload) => upload.outcome === 'acknowledged' && isSafe(upload, upload.start)) ||
      (this.#sightings.get(id) ?? []).some((sighting) => isSafe(sighting)) ||
      this.#rootsIn(span).some(({ rootId }) => rootId === id)
    )
  }

  /** The object was seen. Throws `Violation` if it cannot be present, or not with this text. */
  saw(id: string, text: string | undefined, span: Span): void {
    const sources = this.#uploadsOf(id).filter((upload) => this.mayBeThere(upload, span))
    if (sources.length === 0) throw new Violation(`${id} is there, and no upload that is left brought it`)
    if (this.isGone(id, span)) throw new Violation(`${id} is there again, and nobody brought it`)
    if (text !== undefined) this.#checkText(id, text, span, sources)
    const seen = this.#sightings.get(id) ?? []
    this.#sightings.set(id, seen)
    if (seen.length < 64) seen.push({ ...span, text })
  }

  /** The object was reported absent. Throws `Violation` if it must be present. */
  sawNot(id: string, span: Span): void {
    if (this.isThere(id, span)) throw new Violation(`${id} is absent, though it was acknowledged or seen before`)
  }

  /** The object could not be read: it is not there before somebody brings it again. Throws as `sawNot` does. */
  sawGone(id: string, span: Span): void {
    this.sawNot(id, span)
    const absences = this.#absences.get(id) ?? []
    this.#absences.set(id, absences)
    if (absences.length < 64) absences.push({ ...span })
  }

  /** The object was reported as not held: it is absent, or condemned. Throws `Violation` if it must be live. */
  sawNotHeld(id: string, span: Span): void {
    if (!this.collections.mayBeCondemned(id, span)) this.sawNot(id, span)
  }

  /** The object was listed as one that no root leads to. Throws `Violation` if a root does, or it cannot be so. */
  sawUnreferenced({ id, state }: Pick<UnreferencedObject, 'id' | 'state'>, span: Span): void {
    this.saw(id, undefined, span)
    if (state === 'condemned' && !this.collections.mayBeCondemned(id, span))
      throw new Violation(`${id} is listed as condemned, and nobody can have condemned it`)
    if (this.collections.rootedIn(span).has(id))
      throw new Violation(`${id} is listed as unreferenced, though a root leads to it`)
  }

  /** How often somebody tried to remove the project. */
  get removals(): number {
    return this.#removals.length
  }

  /** Whether the project may have been removed since the beginning of this span. */
  isRemovedSince({ start }: Span): boolean {
    return this.#removals.some(({ end }) => end > start)
  }

  /** Whether a removal may have come after the beginning of one and before the end of the other. */
  isRemovedWithin(earlier: Span, later: Span): boolean {
    return this.#removals.some(({ start, end }) => end > earlier.start && start < later.end)
  }

  /** Whether something that was written in one span is removed for certain when the other begins. */
  isCertainlyRemoved(written: Span, { start }: Span): boolean {
    return this.#removals.some(
      (removal) => removal.isAcknowledged && removal.start > written.end && removal.end < start,
    )
  }

  /** An operator was told that data is lost: nothing must be there any more. */
  lost(): void {
    this.#isLost = true
  }

  /** The records were written anew: of several texts of one id another one may count now. */
  reindexed(): void {
    for (const sightings of this.#sightings.values()) for (const sighting of sightings) sighting.text = undefined
    // What was freed is still in its pack.
    this.#absences.clear()
  }

  /**
   * Throws `Violation` unless these objects are the closure of the root, without what `had` holds already. Where `had`
   * may be of a project that was removed meanwhile (`undefined`), only each object by itself is looked at.
   */
  sawClosure(
    rootId: string,
    texts: ReadonlyMap<string, string>,
    had: ReadonlyMap<string, string> | undefined,
    span: Span,
  ): void {
    if (texts.keys().next().value !== rootId) throw new Violation(`a download of ${rootId} does not begin with it`)
    const textOf = (id: string): string | undefined => texts.get(id) ?? had?.get(id)
    if (had !== undefined) {
      const moment = this.#momentOf(texts, span)
      // What the client has may be gone from the server, and then leads to nothing there.
      for (const id of this.#reached(rootId, (id) =>
        texts.has(id) || this.isThere(id, span) ? textOf(id) : undefined,
      )) {
        if (textOf(id) !== undefined) continue
        this.sawNot(id, span)
        if (this.isThere(id, moment))
          throw new Violation(`a download of ${rootId} lacks ${id}, which was there before all that it holds was`)
      }
    }
    const reached = this.#reached(rootId, textOf)
    for (const [id, text] of texts) {
      this.saw(id, text, span)
      if (had !== undefined && !reached.has(id))
        throw new Violation(`a download of ${rootId} holds ${id}, which nothing in it leads to`)
    }
  }

  /** The root and everything that the known texts lead to. */
  #reached(rootId: string, textOf: (id: string) => string | undefined): ReadonlySet<string> {
    const reached = new Set([rootId])
    for (const id of reached) for (const child of this.#childrenIn(textOf(id))) reached.add(child)
    return reached
  }

  #childrenIn(text: string | undefined): Iterable<string> {
    return text === undefined ? [] : this.childrenOf(text)
  }

  /**
   * Throws `Violation` if only a part of an upload is present. Call it when nothing is under way any more; `held`
   * returns the present objects.
   */
  checkWhole(held: ReadonlySet<string>): void {
    // Collections take the objects of an upload one by one.
    for (const upload of this.collections.isEmpty ? this.#uploads : []) {
      const own = [...upload.texts.keys()].filter((id) => this.#uploadsOf(id).length === 1)
      const there = own.filter((id) => held.has(id))
      if (there.length > 0 && there.length < own.length)
        throw new Violation(`of one upload ${there[0]} is there, and ${own.find((id) => !held.has(id))} is not`)
    }
  }

  /** Whether the object was absent before, and every upload that brings it had been acknowledged by then. */
  isGone(id: string, span: Span): boolean {
    const absences = this.#absences.get(id) ?? []
    if (absences.length === 0) return false
    const brought = this.#uploadsOf(id).filter(({ outcome, start }) => outcome !== 'refused' && start < span.end)
    return absences.some(
      (absence) =>
        absence.end < span.start &&
        brought.every(({ outcome, end }) => outcome === 'acknowledged' && end < absence.start),
    )
  }

  /** From the first moment at which all of these can have been there. */
  #momentOf(texts: ReadonlyMap<string, string>, span: Span): Span {
    const firstStart = (id: string): number =>
      this.#uploadsOf(id).find((upload) => this.mayBeThere(upload, span))?.start ?? Infinity
    return { ...span, start: Math.max(span.start, ...[...texts.keys()].map(firstStart)) }
  }

  #uploadsOf(id: string): readonly Upload[] {
    return this.#uploadsById.get(id) ?? []
  }

  /** Whether the upload was not refused, and may not be removed. */
  mayBeThere(upload: Upload, span: Span): boolean {
    return upload.outcome !== 'refused' && upload.start <= span.end && !this.isCertainlyRemoved(upload, span)
  }

  #checkText(id: string, text: string, span: Span, sources: readonly Upload[]): void {
    const wins = (upload: Upload): boolean =>
      !this.#uploadsOf(id).some(
        (earlier) =>
          earlier.outcome === 'acknowledged' &&
          earlier.end < upload.start &&
          earlier.texts.get(id) !== upload.texts.get(id) &&
          !this.isRemovedWithin(earlier, upload) &&
          !this.collections.mayBeCondemned(id, upload),
      )
    if (!sources.some((upload) => upload.texts.get(id) === text && wins(upload)))
      throw new Violation(`${id} has a text that no upload can have given it: ${text.slice(0, 200)}`)
    for (const sighting of this.#sightings.get(id) ?? []) {
      if (sighting.text === undefined || sighting.text === text) continue
      // Where the spans overlap, either text may have been read first.
      const mayBeRemoved = this.isRemovedWithin(sighting, span) || this.isRemovedWithin(span, sighting)
      const last = sighting.end > span.end ? sighting : span
      if (!mayBeRemoved && !this.collections.mayHaveBeenCondemned(id, last))
        throw new Violation(`${id} has another text than it was seen to have`)
    }
  }
}
