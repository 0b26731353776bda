import { orAborted } from '../../async/abort.ts'
import type { Environment } from '../../environment.ts'
import { isServiceError, StowageError } from '../../errors.ts'
import type { ProjectSize, ProjectTotals, StoreTotals, TotalsReader } from '../../object/graph-store.ts'
import type { Entry, RecordStore } from '../../storage/backend.ts'
import { keyBounds, keyParts, totalsKey } from '../records/keys.ts'
import { decodeHead, decodeTotals } from '../records/records.ts'
import { addTotals, NO_TOTALS } from '../records/totals.ts'

/** Each becomes a series of every gauge. */
const LARGEST_MAX = 100
/** How long a reading is given to callers. Prometheus asks every 15 to 60 s. */
const FRESH_MS = 30_000
/** With very many projects, reading takes at most one tenth of the time. */
const PAUSE_PER_READING = 9
/** How long a caller waits for a new reading: less than the timeout of a scrape. */
const WAIT_MS = 2_000

export interface AllTotalsParts {
  readonly records: RecordStore
  readonly environment: Environment
  /** Aborts when the store closes. */
  readonly closing: AbortSignal
}

interface Reading {
  readonly totals: StoreTotals
  readonly freshUntilMs: number
}

/**
 * The totals of all projects, from their records alone. It holds a batch of records and the largest projects, however
 * many there are.
 */
export class AllTotals implements TotalsReader {
  readonly #parts: AllTotalsParts
  #last: Reading | undefined
  #reading: Promise<Reading> | undefined

  constructor(parts: AllTotalsParts) {
    this.#parts = parts
  }

  async read(): Promise<StoreTotals> {
    if (this.#last !== undefined && this.#nowMs() < this.#last.freshUntilMs) return this.#last.totals
    this.#reading ??= this.#begin()
    return (await this.#inTime(this.#reading)).totals
  }

  /** Resolves when nothing is being read. */
  async settled(): Promise<void> {
    await this.#reading?.catch(() => undefined)
  }

  #begin(): Promise<Reading> {
    const reading = this.#readAll().finally(() => (this.#reading = undefined))
    // Its callers may have left.
    reading.catch(() => undefined)
    return reading
  }

  async #readAll(): Promise<Reading> {
    const { records, closing } = this.#parts
    const beganAtMs = this.#nowMs()
    const ranking = new Ranking()
    for await (const heads of records.range(keyBounds('head'), { signal: closing })) {
      closing.throwIfAborted()
      await addBatch(records, heads, ranking, closing)
    }
    const endedAtMs = this.#nowMs()
    const pauseMs = Math.max(FRESH_MS, PAUSE_PER_READING * (endedAtMs - beganAtMs))
    this.#last = { totals: ranking.result(), freshUntilMs: endedAtMs + pauseMs }
    return this.#last
  }

  /** The former reading if the new one takes too long, and `overloaded` if there is none. */
  async #inTime(reading: Promise<Reading>): Promise<Reading> {
    const late = new StowageError('overloaded', 'the totals of all projects are not read yet; try again shortly')
    const waiting = new AbortController()
    const timer = this.#parts.environment.setTimer(WAIT_MS, () => waiting.abort(late))
    try {
      return await orAborted(reading, waiting.signal)
    } catch (error) {
      if (error === late && this.#last !== undefined) return this.#last
      throw error
    } finally {
      timer.cancel()
    }
  }

  #nowMs(): number {
    return this.#parts.environment.monotonicMs()
  }
}

async function addBatch(
  records: RecordStore,
  heads: readonly Entry[],
  ranking: Ranking,
  signal: AbortSignal,
): Promise<void> {
  const projects: { readonly projectId: string; readonly key: Uint8Array }[] = []
  for (const { key, value } of heads) {
    const head = unlessDamaged(() => decodeHead(key, value))
    const [projectId] = keyParts(key)
    if (head === undefined) ranking.uncounted++
    else if (!head.removed) projects.push({ projectId, key: totalsKey(projectId, head.generation) })
  }
  const values = await records.getMany(
    projects.map(({ key }) => key),
    { signal },
  )
  for (const [at, { projectId, key }] of projects.entries()) {
    const value = values[at]
    const totals = value === undefined ? undefined : unlessDamaged(() => decodeTotals(key, value))
    if (totals === undefined) ranking.uncounted++
    else ranking.add({ projectId, ...totals })
  }
}

/** One damaged record must not hide the totals of all others. */
function unlessDamaged<T>(decode: () => T): T | undefined {
  try {
    return decode()
  } catch (error) {
    if (isServiceError(error) && error.code === 'corrupt_data') return undefined
    throw error
  }
}

/** Keeps the largest, and sums up the others. */
class Ranking {
  uncounted = 0
  #projects = 0
  #largest: ProjectSize[] = []
  #others: ProjectTotals = NO_TOTALS

  add(size: ProjectSize): void {
    this.#projects++
    this.#largest.push(size)
    if (this.#largest.length >= 2 * LARGEST_MAX) this.#cut()
  }

  result(): StoreTotals {
    this.#cut()
    return { projects: this.#projects, largest: this.#largest, others: this.#others, uncountedProjects: this.uncounted }
  }

  #cut(): void {
    this.#largest.sort((a, b) => b.storedBytes - a.storedBytes || (a.projectId < b.projectId ? -1 : 1))
    for (const other of this.#largest.splice(LARGEST_MAX)) this.#others = addTotals(this.#others, other)
  }
}
