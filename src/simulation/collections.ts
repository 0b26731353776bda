import type { ChildrenOf } from './models.ts'
import type { Span, Upload } from './span.ts'

/** A collection of a project that somebody began, and that may have changed something. */
export interface Collection extends Span {
  readonly graceEpochs: number
  readonly undoEpochs: number
  /** It condemns only these, and what is below them and below nothing else. It frees nothing. */
  readonly chosen?: readonly string[]
}

/** An undo of collections. */
export interface Restoration extends Span {
  isAcknowledged: boolean
}

/** A root that is kept for certain. */
export interface CertainRoot extends Pick<Span, 'start' | 'end'> {
  readonly rootId: string
}

/** What a book of collections asks about its project. */
export interface CollectionParts {
  readonly uploads: () => readonly Upload[]
  readonly uploadsOf: (id: string) => readonly Upload[]
  readonly childrenOf: ChildrenOf
  /** Rises with everything that begins or ends. */
  readonly moment: () => number
  /** Ids of the roots that are kept for certain throughout a span. */
  readonly rootsIn: (span: Span) => readonly CertainRoot[]
  /** Whether the project may have been removed after the beginning of one span and before the end of the other. */
  readonly isRemovedWithin: (earlier: Span, later: Span) => boolean
  /** At most so many epochs began from the start of one span to the end of another. */
  readonly epochsMax: (from: Span, to: Span) => number
}

/** The epoch that an upload writes may be the one before. */
const STALE_EPOCHS = 1
/** A write that its caller gave up may take effect so long after. */
const ABANDONED_MS = 10

/** The objects that collections of a project may have taken: no root reached them, and they were not young. */
export class CollectionBook {
  readonly #parts: CollectionParts
  readonly #collections: Collection[] = []
  readonly #restorations: Restoration[] = []
  /** What collections certainly kept, as it is known at one moment: many objects are asked for together. */
  readonly #kept = new Map<string, ReadonlySet<string>>()
  /** What a choice may concern, as it is known at the same moment. */
  readonly #choices = new Map<Collection, ReadonlySet<string>>()
  #keptAtMoment = -1

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
      this.#mayHaveTaken(
        id,
        span,
        (collection) => !this.#isUndone(collection, span) && !this.#isBroughtAfter(id, collection, span),
      ) || this.mayBeFreed(id, { start: -1 }, span)
    )
  }

  /** Whether it may have been condemned at some time before: then an upload may have given it another text. */
  mayHaveBeenCondemned(id: string, span: Span): boolean {
    return this.#mayHaveTaken(id, span, () => true)
  }

  #mayHaveTaken(id: string, span: Span, counts: (collection: Collection) => boolean): boolean {
    return this.#collections.some(
      (collection) => collection.start < span.end && counts(collection) && this.#mayTake(id, collection, span),
    )
  }

  /**
   * Whether a collection that ended after the evidence began may have freed it, so that nobody can read it. An upload
   * writes what is condemned anew: then only collections that end after it count as those that condemned.
   */
  mayBeFreed(id: string, evidence: Pick<Span, 'start'>, span: Span, condemnedAfter = -1): boolean {
    return this.#collections.some(
      (freeing) =>
        freeing.chosen === undefined &&
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

  /** What these may lead to, and they themselves: through any text that somebody tried to give them. */
  mayBeBelow(ids: readonly string[]): ReadonlySet<string> {
    const { uploadsOf, childrenOf } = this.#parts
    const reached = new Set(ids)
    for (const id of reached)
      for (const { texts } of uploadsOf(id)) for (const child of childrenOf(texts.get(id))) reached.add(child)
    return reached
  }

  /** What roots that are kept throughout this span certainly lead to. */
  rootedIn(span: Span): ReadonlySet<string> {
    const rooted = new Set<string>()
    const look = { ...span, graceEpochs: 0, undoEpochs: 0 }
    for (const root of this.#parts.rootsIn(span))
      for (const id of this.#below([root.rootId], root, look)) rooted.add(id)
    return rooted
  }

  /** An upload that began when the collection was over brought it, and was acknowledged. */
  #isBroughtAfter(id: string, collection: Collection, before: Span): boolean {
    return this.#parts
      .uploadsOf(id)
      .some(
        (upload) =>
          upload.outcome === 'acknowledged' &&
          upload.start > collection.end &&
          upload.startMs > collection.endMs + ABANDONED_MS &&
          upload.end < before.start &&
          !this.#parts.isRemovedWithin(upload, before),
      )
  }

  /** Neither a root nor a young object certainly leads to it, and if some were chosen, these may. */
  #mayTake(id: string, collection: Collection, { end }: Span): boolean {
    const moment = this.#parts.moment()
    if (this.#keptAtMoment !== moment) {
      this.#kept.clear()
      this.#choices.clear()
    }
    this.#keptAtMoment = moment
    if (collection.chosen !== undefined && !this.#choiceOf(collection, collection.chosen).has(id)) return false
    const until = Math.min(collection.end, end)
    const name = `${collection.start} ${until}`
    const known = this.#kept.get(name)
    const kept = known ?? this.#certainlyKept(collection, until)
    if (known === undefined) this.#kept.set(name, kept)
    return !kept.has(id)
  }

  #certainlyKept(collection: Collection, until: number): ReadonlySet<string> {
    const kept = new Set<string>()
    for (const root of this.#parts.rootsIn({ ...collection, end: until }))
      for (const id of this.#below([root.rootId], root, collection)) kept.add(id)
    for (const upload of this.#parts.uploads()) {
      if (upload.outcome !== 'acknowledged' || !this.#isYoungAndLive(upload, collection)) continue
      const own = [...upload.texts.keys()].filter((id) => isFirstOf(upload, this.#parts.uploadsOf(id)))
      for (const id of this.#below(own, upload, collection)) kept.add(id)
    }
    for (const id of this.#keptBeside(collection)) kept.add(id)
    return kept
  }

  #choiceOf(collection: Collection, chosen: readonly string[]): ReadonlySet<string> {
    const known = this.#choices.get(collection) ?? this.mayBeBelow(chosen)
    this.#choices.set(collection, known)
    return known
  }

  /** What objects certainly lead to that were live and not below the chosen ones. After other collections, nobody knows. */
  *#keptBeside(collection: Collection): Generator<string> {
    if (collection.chosen === undefined) return
    if (!this.#collections.every((other) => other === collection || other.start > collection.end)) return
    const choice = this.#choiceOf(collection, collection.chosen)
    for (const upload of this.#parts.uploads()) {
      if (!this.#isSafe(upload, upload, collection)) continue
      const own = [...upload.texts.keys()].filter(
        (id) => !choice.has(id) && isFirstOf(upload, this.#parts.uploadsOf(id)),
      )
      yield* this.#below(own, upload, collection)
    }
  }

  /** What was kept since `since` certainly leads to these, through objects that no collection can have freed. */
  #below(ids: readonly string[], since: Pick<Span, 'end'>, collection: Collection): ReadonlySet<string> {
    const { uploadsOf, childrenOf } = this.#parts
    const reached = new Set(ids)
    for (const id of reached) {
      const safe = uploadsOf(id).find((upload) => this.#isSafe(upload, since, collection))
      for (const child of childrenOf(safe?.texts.get(id))) reached.add(child)
    }
    return reached
  }

  /** It was acknowledged before the collection, each collection since then saw what keeps it, and no removal took it. */
  #isSafe(upload: Upload, since: Pick<Span, 'end'>, collection: Collection): boolean {
    return (
      upload.outcome === 'acknowledged' &&
      upload.end < collection.start &&
      !this.#parts.isRemovedWithin(upload, collection) &&
      this.#collections.every(
        (other) =>
          other === collection || other.start > collection.start || other.end < upload.start || other.start > since.end,
      )
    )
  }

  /** It is young, and no collection before had less patience with it: one could have condemned it. */
  #isYoungAndLive(upload: Upload, collection: Collection): boolean {
    return (
      this.#isYoung(upload, collection) &&
      this.#collections.every(
        (other) => other.start >= collection.start || other.end < upload.start || this.#isYoung(upload, other),
      )
    )
  }

  #isYoung(upload: Upload, collection: Collection): boolean {
    return (
      upload.end < collection.start &&
      this.#parts.epochsMax(upload, collection) + STALE_EPOCHS <= collection.graceEpochs
    )
  }
}

/** Nobody else can have written the object before. */
function isFirstOf(upload: Upload, uploadsOfId: readonly Upload[]): boolean {
  return uploadsOfId.every((other) => other === upload || other.start > upload.end)
}
