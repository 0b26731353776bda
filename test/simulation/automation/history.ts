import { EPOCH_MS } from '../../../src/store/upkeep/epochs.ts'

/** Between two moments, counted over everything that begins or ends. */
export interface Span {
  readonly start: number
  /** `Infinity` while it is under way, and where nobody knows when it ended. */
  end: number
  readonly startMs: number
  endMs: number
}

/** A deletion or a restoration that a client asked for. One that was refused changed nothing, and is not kept. */
interface Change extends Span {
  readonly kind: 'delete' | 'restore'
  isAcknowledged: boolean
}

/** Epochs that a deleted model or version can be restored in, at least. */
export const GRACE_EPOCHS = 2

/** The moments of a run, and the epochs that passed between two of them. */
export class Timeline {
  readonly #nowMs: () => number
  readonly #ages: { readonly span: Span; readonly epochs: number }[] = []
  #moment = 0

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  begin(): Span {
    return { start: this.#moment++, end: Infinity, startMs: this.#nowMs(), endMs: Infinity }
  }

  end(span: Span): void {
    span.end = this.#moment++
    span.endMs = this.#nowMs()
  }

  aged(span: Span, epochs: number): void {
    this.#ages.push({ span, epochs })
  }

  /** At most so many epochs began from the start of one span to the end of another. */
  epochsMax(from: Span, to: Span): number {
    const natural = Math.floor((Math.min(to.endMs, this.#nowMs()) - from.startMs) / EPOCH_MS) + 1
    return this.#ages
      .filter(({ span }) => span.end > from.start && span.start < to.end)
      .reduce((sum, { epochs }) => sum + epochs, natural)
  }
}

/** What clients know about the deletions and restorations of one model or version. */
export class Fate {
  readonly #timeline: Timeline
  readonly #changes: Change[] = []

  constructor(timeline: Timeline) {
    this.#timeline = timeline
  }

  /** A client asks for it. `end` it, or take it back with `refused`; otherwise it may take effect at any time. */
  begin(kind: Change['kind']): Change {
    const change = { ...this.#timeline.begin(), kind, isAcknowledged: false }
    this.#changes.push(change)
    return change
  }

  acknowledged(change: Change): void {
    this.#timeline.end(change)
    change.isAcknowledged = true
  }

  refused(change: Change): void {
    this.#changes.splice(this.#changes.indexOf(change), 1)
  }

  /** Whether it is there and not deleted, throughout the span. */
  isLive(span: Span): boolean {
    return !this.#deletions(span).some((deletion) => !this.#isUndone(deletion, span))
  }

  /** Whether it is deleted, throughout the span. */
  isDeleted(span: Span): boolean {
    return this.#deletions(span).some(
      (deletion) =>
        deletion.isAcknowledged &&
        deletion.end < span.start &&
        !this.#changes.some(({ kind, start, end }) => kind === 'restore' && start < span.end && end > deletion.start),
    )
  }

  /** Whether its grace may have ended before the end of the span. */
  mayBePurged(span: Span): boolean {
    return this.#deletions(span).some(
      (deletion) => !this.#isUndone(deletion, span) && this.#timeline.epochsMax(deletion, span) > GRACE_EPOCHS,
    )
  }

  /** Whether nobody asked for its deletion before the end of the span. */
  isUntouched(span: Span): boolean {
    return this.#deletions(span).length === 0
  }

  #deletions(span: Span): readonly Change[] {
    return this.#changes.filter(({ kind, start }) => kind === 'delete' && start < span.end)
  }

  #isUndone(deletion: Change, before: Span): boolean {
    return this.#changes.some(
      ({ kind, start, end, isAcknowledged }) =>
        kind === 'restore' && isAcknowledged && deletion.end < start && end < before.start,
    )
  }
}
