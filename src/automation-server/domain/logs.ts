import { StowageError } from '../../errors.ts'
import type { LogLine } from '../../automation/author/run-data.ts'
import type { Entry } from '../../storage/backend.ts'
import { projectKey } from '../records/keys.ts'
import { type AutomationStore, PAGE_ITEMS_DEFAULT, type ProjectScope } from '../records/store.ts'
import { decodeRecord } from '../records/codec.ts'
import type { Page, PageRequest } from '../schemas/types.ts'
import type { RunRecord } from './run-record.ts'

/** Records of one report, so that it fits a commit. */
const CHUNKS_MAX = 12
const CHUNK_BYTES_MAX = 48_000
/** Longer lines are cut. */
const LINE_BYTES_MAX = 40_000
const MESSAGE_CHARACTERS_MAX = 16_384
const CUT_CHARACTERS = 6_000
const LINE_DIGITS = 8

type LogState = Pick<RunRecord, 'id' | 'logLines' | 'logBytes' | 'logsTruncated'>

/** Log lines of runs, in records of many lines under the number of their first one. */
export class Logs {
  readonly #store: AutomationStore
  readonly #bytesMax: number

  constructor(store: AutomationStore, bytesMax: number) {
    this.#store = store
    this.#bytesMax = bytesMax
  }

  /** As many of the lines as fit, as records, and the run's new summary of its lines. */
  added(
    scope: ProjectScope,
    run: LogState,
    lines: readonly LogLine[],
  ): { readonly put: readonly Entry[]; readonly run: Omit<LogState, 'id'> } {
    const chunks: LogLine[][] = []
    let [chunkBytes, logBytes, logLines, isFull] = [CHUNK_BYTES_MAX, run.logBytes, run.logLines, false]
    for (const line of lines) {
      const { kept, bytes } = cutLine(line)
      const needsChunk = chunkBytes + bytes > CHUNK_BYTES_MAX
      isFull = logBytes + bytes > this.#bytesMax || (needsChunk && chunks.length === CHUNKS_MAX)
      if (isFull) break
      if (needsChunk) chunks.push([])
      chunkBytes = needsChunk ? bytes : chunkBytes + bytes
      chunks.at(-1)?.push(kept)
      logBytes += bytes
      logLines++
    }
    let first = run.logLines
    const put = chunks.map((chunk) => {
      const entry = this.#store.entry(projectKey(scope, 'log', run.id, lineText(first)), chunk)
      first += chunk.length
      return entry
    })
    return { put, run: { logBytes, logLines, logsTruncated: run.logsTruncated || isFull } }
  }

  /** Throws `invalid_request` for a cursor that no page gave. */
  async list(
    scope: ProjectScope,
    runId: string,
    { cursor, limit = PAGE_ITEMS_DEFAULT }: PageRequest,
  ): Promise<Page<LogLine>> {
    return this.listFrom(scope, runId, cursor === undefined ? 0 : parseCursor(cursor), limit)
  }

  /** Lines from the one with this number on. */
  async listFrom(scope: ProjectScope, runId: string, from: number, limit: number): Promise<Page<LogLine>> {
    const items: LogLine[] = []
    for await (const { first, lines } of this.#chunks(scope, runId, from)) {
      items.push(...lines.slice(Math.max(0, from - first)))
      if (items.length > limit) return { items: items.slice(0, limit), cursor: lineText(from + limit) }
    }
    return { items, cursor: null }
  }

  /** The record that holds line `from`, and those after it. */
  async *#chunks(
    scope: ProjectScope,
    runId: string,
    from: number,
  ): AsyncGenerator<{ readonly first: number; readonly lines: readonly LogLine[] }> {
    const start = projectKey(scope, 'log', runId)
    const upTo = projectKey(scope, 'log', runId, lineText(from + 1))
    let gte: Uint8Array | undefined
    for await (const entries of this.#store.records.range({ gte: start, lt: upTo, limit: 1, reverse: true }))
      gte = entries[0]?.key
    const lt = Uint8Array.from(start)
    lt[lt.length - 1] = 1
    for await (const entries of this.#store.records.range({ gte: gte ?? start, lt })) {
      for (const { key, value } of entries)
        yield { first: lineOf(key), lines: decodeRecord<readonly LogLine[]>(key, value) }
    }
  }
}

/** A line that fits a record however its characters are written. */
function cutLine(line: LogLine): { readonly kept: LogLine; readonly bytes: number } {
  const kept = { ...line, message: line.message.slice(0, MESSAGE_CHARACTERS_MAX) }
  const bytes = Buffer.byteLength(JSON.stringify(kept))
  return bytes <= LINE_BYTES_MAX
    ? { kept, bytes }
    : cutLine({ ...line, message: line.message.slice(0, CUT_CHARACTERS) })
}

function parseCursor(cursor: string): number {
  if (new RegExp(`^[\\da-f]{${LINE_DIGITS}}$`).test(cursor)) return Number.parseInt(cursor, 16)
  throw new StowageError('invalid_request', 'the cursor does not come from a page of log lines')
}

function lineText(line: number): string {
  return line.toString(16).padStart(LINE_DIGITS, '0')
}

function lineOf(key: Uint8Array): number {
  return Number.parseInt(Buffer.from(key.subarray(-1 - LINE_DIGITS, -1)).toString('latin1'), 16)
}
