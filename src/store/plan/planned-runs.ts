import { crc32 } from 'node:zlib'
import { corrupt } from '../bytes/byte-codec.ts'
import { type ByteSource, nameOf } from '../pack/segment.ts'
import type { LoadedRun, StoredRun } from '../pack/segment-reader.ts'
import type { PlanRows } from './plan-format.ts'

/** Neighbouring rows of a plan that one read brings. */
export interface PlannedRun extends StoredRun {
  readonly firstRow: number
  /** After the last. */
  readonly endRow: number
}

export interface PlannedRunsOptions {
  readonly firstRow: number
  /** After the last. */
  readonly endRow: number
  /** The size of the next read; a single larger row is still read at once. */
  readonly bytesMax: () => number
  /** Unneeded bytes between two rows that are read along. */
  readonly gapBytesMax: number
  readonly sourceOf: (number: number) => ByteSource | Promise<ByteSource>
}

/** Rows as reads, without an object for each row: a plan can have tens of thousands. */
export function* plannedRuns(rows: PlanRows, options: PlannedRunsOptions): Generator<PlannedRun> {
  const { firstRow, endRow, bytesMax, gapBytesMax, sourceOf } = options
  for (let row = firstRow; row < endRow;) {
    const first = row
    const number = rows.sources[row]
    const start = rows.starts[row]
    const endMax = start + bytesMax()
    let end = start + rows.storedBytes[row]
    let gapBytes = 0
    for (row++; row < endRow && rows.sources[row] === number; row++) {
      const gap = rows.starts[row] - end
      const nextEnd = rows.starts[row] + rows.storedBytes[row]
      if (gap < 0 || gap > gapBytesMax || nextEnd > endMax) break
      gapBytes += gap
      end = nextEnd
    }
    const parts = gapBytes === 0 ? undefined : partsOf(rows, first, row)
    yield { source: () => sourceOf(number), start, end, parts, firstRow: first, endRow: row }
  }
}

function partsOf(rows: PlanRows, firstRow: number, endRow: number): { start: number; end: number }[] {
  return Array.from({ length: endRow - firstRow }, (_, i) => {
    const start = rows.starts[firstRow + i]
    return { start, end: start + rows.storedBytes[firstRow + i] }
  })
}

/** Throws `corrupt_data` if the bytes of a row do not match their CRC-32. */
export function checkRows(rows: PlanRows, { run, source, bytes }: LoadedRun<PlannedRun>): void {
  let from = 0
  for (let row = run.firstRow; row < run.endRow; row++) {
    const to = from + rows.storedBytes[row]
    if (crc32(bytes.subarray(from, to)) !== rows.storedCrc32[row]) {
      const start = rows.starts[row]
      const end = start + rows.storedBytes[row]
      throw corrupt(`stored blocks at bytes ${start} to ${end} of ${nameOf({ source })} do not match their CRC-32`)
    }
    from = to
  }
}
