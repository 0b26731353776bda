import { childrenOf } from './models.ts'
import type { Span, Upload } from './span.ts'

/** A collection of a project that somebody began, and that may have changed something. */
export interface Collection extends Span {
  readonly graceEpochs: number
  readonly undoEpochs: number
}

/** An undo of collections. */
export interface Restoration extends Span {
  isAcknowledged: boolean
}

/** A root that is kept for certain; its creation made everything that it leads to live again. */
export interface CertainRoot extends Pick<Span, 'start' | 'end'> {
  readonly rootId: string
}

/** What a book of collections asks about its project. */
export interface CollectionParts {
  readonly uploads: () => readonly Upload[]
  /** Ids of the roots that are kept for certain throughout a span. */
  readonly rootsIn: (span: Span) => readonly CertainRoot[]
  /** At most so many epochs began from the start of one span to the end of another. */
  readonly epochsMax: (from: Span, to: Span) => number
}

/** The epoch that an upload writes may be the one before. */
const STALE_EPOCHS = 1

/** The objects that collections of a project may have taken: no root reached them, and they were not young. */
export class CollectionBook {
  readonly #parts: CollectionParts
  readonly #collections: Collection[] = []
  readonly #restorations: Restoration[] = []

  constructor(parts: CollectionParts) {
    this.#parts = parts
  }

  get isEmpty(): boolean {
    return this.#collections.length === 0
  }

  begin(collection: Collection): void {
    this.#collections.push(collection)
  }

  beginRestoration(restoration: Restoration): void {
    this.#restorations.push(restoration)
  }

  /** Whether a collection may have condemned it: then an upload that asks is told to send it. */
  mayBeCondemned(id: string, span: Span): boolean {
    return (
      this.#collections.some(
        (collection) =>
          collection.start < span.end &&
          !this.#isUndone(collection, span) &&
          !this.#isRevived(id, collection, span) &&
          this.#mayTake(id, collection, span),
      ) || this.mayBeFreed(id, { start: -1 }, span)
    )
  }

  /**
   * Whether a collection that ended after the evidence began may have freed it, so that nobody can read it. An upload
   * writes what is condemned anew: then only collections that end after it count as those that condemned.
   */
  mayBeFreed(id: string, evidence: Pick<Span, 'start'>, span: Span, condemnedAfter = -1): boolean {
    return this.#collections.some(
      (freeing) =>
        freeing.start < span.end &&
        freeing.end > evidence.start &&
        this.#mayTake(id, freeing, span) &&
        this.#collections.some(
          (condemning) =>
            condemning.start <= freeing.start &&
            condemning.end > condemnedAfter &&
            !this.#isUndone(condemning, freeing) &&
            this.#parts.epochsMax(condemning, freeing) > freeing.undoEpochs &&
            this.#mayTake(id, condemning, span),
        ),
    )
  }

  #isUndone(collection: Collection, before: Pick<Span, 'start'>): boolean {
    return this.#restorations.some(
      ({ start, end, isAcknowledged }) => isAcknowledged && collection.end < start && end < before.start,
    )
  }

  #isRevived(id: string, collection: Collection, span: Span): boolean {
    const uploads = this.#parts.uploads()
    const roots = this.#parts.rootsIn(span).filter(({ start }) => start > collection.end)
    return reach(new Set(roots.map(({ rootId }) => rootId)), uploads).has(id)
  }

  /** Neither a root nor a young object certainly leads to it. */
  #mayTake(id: string, collection: Collection, { end }: Span): boolean {
    const uploads = this.#parts.uploads()
    const roots = this.#parts.rootsIn({ ...collection, end: Math.min(collection.end, end) })
    const reached = new Set(roots.map(({ rootId }) => rootId))
    for (const upload of uploads)
      if (upload.outcome === 'acknowledged' && this.#isYoung(upload, collection))
        for (const own of upload.texts.keys()) if (isFirstOf(upload, own, uploads)) reached.add(own)
    return !reach(reached, uploads).has(id)
  }

  #isYoung(upload: Upload, collection: Collection): boolean {
    return (
      upload.end < collection.start &&
      this.#parts.epochsMax(upload, collection) + STALE_EPOCHS <= collection.graceEpochs
    )
  }
}

/** Nobody else can have written the object before. */
function isFirstOf(upload: Upload, id: string, uploads: readonly Upload[]): boolean {
  return uploads.every((other) => other === upload || !other.texts.has(id) || other.start > upload.end)
}

/** Adds everything below. */
function reach(ids: Set<string>, uploads: readonly Upload[]): ReadonlySet<string> {
  for (const parent of ids) for (const child of childrenIn(uploads, parent)) ids.add(child)
  return ids
}

/** All texts of an id lead to the same objects. */
function childrenIn(uploads: readonly Upload[], id: string): readonly string[] {
  const text = uploads.find(({ texts }) => texts.has(id))?.texts.get(id)
  return text === undefined ? [] : childrenOf(text)
}
