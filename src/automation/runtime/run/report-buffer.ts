import { StowageError } from '../../../errors.ts'
import type { LogLine, Annotation, RunReport } from '../../author/run-data.ts'

export type ReportParts = Omit<RunReport, 'sequence'>

/** Characters of JSON in one report, beyond its last item. */
const REPORT_LENGTH_MAX = 262_144
const REPORT_ITEMS_MAX = 500
/** A function that streams is held back from here on, and one that does not is refused at the hard limit. */
const HELD_BACK_LENGTH = 4_194_304
const ANNOTATIONS_LENGTH_MAX = 33_554_432
const LINES_MAX = 10_000
const LINES_LENGTH_MAX = 4_194_304

interface Sized<T> {
  readonly item: T
  readonly length: number
}

/** A queue that knows how long its items are as JSON. */
class Sizes<T> {
  readonly #items: Sized<T>[] = []
  #taken = 0
  length = 0

  get count(): number {
    return this.#items.length - this.#taken
  }

  push(item: T): void {
    const { length } = JSON.stringify(item)
    this.#items.push({ item, length })
    this.length += length
  }

  take(): Sized<T> | undefined {
    if (this.count === 0) return undefined
    const first = this.#items[this.#taken++]
    this.length -= first.length
    if (this.#taken > 1_000 && this.#taken * 2 > this.#items.length) {
      this.#items.splice(0, this.#taken)
      this.#taken = 0
    }
    return first
  }
}

/**
 * Reports of a run that are not delivered yet: in order, and bounded. Annotations are never dropped, log lines are, and
 * only the last progress counts.
 */
export class ReportBuffer {
  readonly #annotations = new Sizes<Annotation>()
  readonly #lines = new Sizes<LogLine>()
  #progress: RunReport['progress']
  #running = false
  #droppedLines = 0

  /** Throws `overloaded`. */
  addAnnotation(result: Annotation): void {
    if (this.#annotations.length > ANNOTATIONS_LENGTH_MAX) {
      throw new StowageError(
        'overloaded',
        `${this.#annotations.count} annotations wait for delivery; more can follow when the function has waited for something`,
      )
    }
    this.#annotations.push(result)
  }

  addLine(line: LogLine): void {
    if (this.#lines.count >= LINES_MAX || this.#lines.length > LINES_LENGTH_MAX) this.#droppedLines += 1
    else this.#lines.push(line)
  }

  setProgress(progress: NonNullable<RunReport['progress']>): void {
    this.#progress = progress
  }

  setRunning(): void {
    this.#running = true
  }

  /** Whether there is enough for a separate report. */
  get isFull(): boolean {
    return (
      this.#running ||
      this.#annotations.length + this.#lines.length > REPORT_LENGTH_MAX ||
      this.#annotations.count + this.#lines.count > REPORT_ITEMS_MAX
    )
  }

  get isHeldBack(): boolean {
    return this.#annotations.length > HELD_BACK_LENGTH
  }

  get isEmpty(): boolean {
    return this.#annotations.count === 0 && this.#lines.count === 0 && this.#progress === undefined && !this.#running
  }

  /** The next report, as much as fits into one. */
  take(): ReportParts {
    const budget = { items: REPORT_ITEMS_MAX, length: REPORT_LENGTH_MAX }
    const annotations = takeWithin(this.#annotations, budget)
    const logs = takeWithin(this.#lines, budget)
    if (this.#lines.count === 0 && this.#droppedLines > 0) {
      logs.push({
        atMs: logs.at(-1)?.atMs ?? 0,
        level: 'warn',
        message: `${this.#droppedLines} lines were dropped: they arrived faster than they could be delivered`,
      })
      this.#droppedLines = 0
    }
    const progress = this.#progress
    const status = this.#running ? ({ status: 'running' } as const) : {}
    this.#progress = undefined
    this.#running = false
    return {
      ...status,
      ...(progress === undefined ? {} : { progress }),
      ...(annotations.length === 0 ? {} : { annotations }),
      ...(logs.length === 0 ? {} : { logs }),
    }
  }
}

function takeWithin<T>(queue: Sizes<T>, budget: { items: number; length: number }): T[] {
  const taken: T[] = []
  while (queue.count > 0 && budget.items > 0 && budget.length > 0) {
    const { item, length } = queue.take() as Sized<T>
    taken.push(item)
    budget.items -= 1
    budget.length -= length
  }
  return taken
}
