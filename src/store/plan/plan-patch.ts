import { crc32Combine } from '../../compression/crc32-combine.ts'
import { type Segment, SEGMENT_RAW_BYTES_MAX } from '../pack/segment.ts'
import type { SegmentPiece } from '../pack/segment-pieces.ts'

/**
 * The approximate size of each fragment of a patch. Larger than a block of a pack, because nothing is ever cut out of a
 * patch. Not much larger than the smallest read.
 */
const PATCH_FRAGMENT_BYTES = SEGMENT_RAW_BYTES_MAX
const TAB = 0x09
const LINE_FEED = 0x0a

/** A part of the patch as it is stored, with the values of its row. */
export interface PatchFragment {
  readonly stored: Uint8Array
  readonly rawBytes: number
  readonly rawCrc32: number
  readonly objects: number
  readonly idBytes: number
}

/**
 * Gathers lines that are still to be compressed, and runs of blocks that are copied as they are, each to fragments of a
 * good size.
 */
export async function* patchPieces(
  batches: AsyncIterable<readonly SegmentPiece[]>,
): AsyncGenerator<{ readonly lines: Uint8Array } | PatchFragment> {
  const lines = new LineGatherer()
  const runs = new RunGatherer()
  for await (const batch of batches) {
    for (const { segment, fragment } of batch) {
      if ('lines' in fragment) yield* lines.add(fragment.lines)
      else yield* runs.add(segment, fragment.deflated)
    }
  }
  yield* lines.rest()
  yield* runs.rest()
}

class LineGatherer {
  #openBytes = 0
  // The semicolon keeps the star below from being a product.
  #open: Uint8Array[] = [];

  *add(lines: Uint8Array): Generator<{ readonly lines: Uint8Array }> {
    for (let start = 0; start < lines.length;) {
      const near = start + PATCH_FRAGMENT_BYTES - this.#openBytes
      const end = near >= lines.length ? lines.length : lines.indexOf(LINE_FEED, near) + 1
      this.#open.push(lines.subarray(start, end))
      this.#openBytes += end - start
      start = end
      if (this.#openBytes >= PATCH_FRAGMENT_BYTES) yield* this.rest()
    }
  }

  *rest(): Generator<{ readonly lines: Uint8Array }> {
    if (this.#openBytes === 0) return
    yield { lines: this.#open.length === 1 ? this.#open[0] : Buffer.concat(this.#open) }
    this.#open = []
    this.#openBytes = 0
  }
}

class RunGatherer {
  #stored: Uint8Array[] = []
  // The semicolon keeps the star below from being a product.
  #totals = { storedBytes: 0, rawBytes: 0, rawCrc32: 0, objects: 0, idBytes: 0 };

  *add(segment: Segment, stored: Uint8Array): Generator<PatchFragment> {
    // A row is inflated at once, and a short stored row may inflate to a very long one.
    if (this.#totals.rawBytes + segment.rawBytes > PATCH_FRAGMENT_BYTES) yield* this.rest()
    const totals = this.#totals
    this.#stored.push(stored)
    this.#totals = {
      storedBytes: totals.storedBytes + stored.length,
      rawBytes: totals.rawBytes + segment.rawBytes,
      rawCrc32: crc32Combine(totals.rawCrc32, segment.rawCrc32, segment.rawBytes),
      objects: totals.objects + segment.objects,
      idBytes: totals.idBytes + segment.idBytes,
    }
    if (this.#totals.storedBytes >= PATCH_FRAGMENT_BYTES) yield* this.rest()
  }

  *rest(): Generator<PatchFragment> {
    if (this.#stored.length === 0) return
    const { rawBytes, rawCrc32, objects, idBytes } = this.#totals
    yield { stored: Buffer.concat(this.#stored), rawBytes, rawCrc32, objects, idBytes }
    this.#stored = []
    this.#totals = { storedBytes: 0, rawBytes: 0, rawCrc32: 0, objects: 0, idBytes: 0 }
  }
}

/** The number of lines, and the bytes of all their ids. */
export function measureLines(lines: Uint8Array): { objects: number; idBytes: number } {
  let objects = 0
  let idBytes = 0
  for (let start = 0; start < lines.length; start = lines.indexOf(LINE_FEED, start) + 1) {
    idBytes += lines.indexOf(TAB, start) - start
    objects++
  }
  return { objects, idBytes }
}
