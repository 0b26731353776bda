import { crc32 } from 'node:zlib'
import { Yielder } from '../../async/yielder.ts'
import { DeltaEncoder } from '../../delta/encode.ts'
import type { Environment } from '../../environment.ts'
import { BLOCK_BYTES } from '../../blocks/ready-blocks.ts'
import { corrupt } from '../bytes/byte-codec.ts'
import { DELTA_DEPTH_MAX } from '../pack/delta-block.ts'
import type { PackBuilder } from '../pack/pack-builder.ts'
import type { MovedBatch } from './moved-batches.ts'

/** Shorter lines compress to little beside their last version, as far as DEFLATE looks back (32 KB). */
const DELTA_LINE_BYTES_MIN = BLOCK_BYTES / 2
/** A delta must be so much smaller than the line that reading it in two steps pays. */
const DELTA_SHARE_MAX = 1 / 4
/** Bytes that are compared between two looks at the clock. */
const COMPARED_AT_ONCE = 65_536

/** Lines that the next one may be a later version of. */
const RECENT_LINES_MAX = 4
const RECENT_BYTES_MAX = 8 * 1_048_576
/** Versions of one object whose signs differ have about the same length. */
const LENGTH_FACTOR_MAX = 1.125

/** A long line that is in the pack. */
interface LongLine {
  readonly ordinal: number
  readonly sign: number
  readonly line: Uint8Array
  /** Deltas that it takes to read it. */
  readonly depth: number
}

/**
 * Adds every object to the pack; each comes once. A long line becomes a delta on a recent one that is probably an older
 * version of the same object: a root that names all of a model is much longer than what DEFLATE looks back.
 */
export class MovedAdmission {
  readonly #yielder: Yielder
  /** The latest comes first. */
  #recent: readonly LongLine[] = []

  constructor(environment: Environment) {
    this.#yielder = new Yielder(environment)
  }

  /** With the index of the encoder, which takes as much as its base. */
  get memoryBytes(): number {
    return this.#recent.reduce((sum, { line }) => sum + 2 * line.length, 0)
  }

  async admit(batch: MovedBatch, builder: PackBuilder): Promise<void> {
    if (batch.beginsPart) builder.beginBlocksOf(batch.blockBytes)
    for (let index = 0, start = 0; index < batch.count; start += batch.lineBytes[index++]) {
      const textStart = start + batch.idBytes[index] + 1
      const textEnd = start + batch.lineBytes[index] - 1
      if (crc32(batch.lines.subarray(textStart, textEnd)) !== batch.textCrc32[index])
        throw corrupt(`the text of object ${idText(batch, start, index)} does not match its CRC-32`)
      const isLong = batch.signs !== undefined && batch.lineBytes[index] >= DELTA_LINE_BYTES_MIN
      const more = isLong
        ? this.#addLong(batch, { index, start, sign: batch.signs[index] }, builder)
        : builder.add(batch, index, start, batch.textCrc32[index])
      if (more !== undefined) await more
    }
  }

  async #addLong(
    batch: MovedBatch,
    { index, start, sign }: { readonly index: number; readonly start: number; readonly sign: number },
    builder: PackBuilder,
  ): Promise<void> {
    const textCrc32 = batch.textCrc32[index]
    const line = Uint8Array.from(batch.lines.subarray(start, start + batch.lineBytes[index]))
    const ordinal = builder.objects
    const base = this.#baseFor(line, sign)
    const delta = base === undefined ? undefined : await this.#deltaOn(base.line, line)
    if (base === undefined || delta === undefined) {
      this.#remember({ ordinal, sign, line, depth: 0 })
      await builder.add(batch, index, start, textCrc32)
    } else {
      this.#remember({ ordinal, sign, line, depth: base.depth + 1 }, base)
      await builder.addDelta(batch, index, start, { textCrc32, delta, baseOrdinal: base.ordinal })
    }
  }

  #baseFor(line: Uint8Array, sign: number): LongLine | undefined {
    const likely =
      this.#recent.find((recent) => recent.sign === sign) ?? this.#recent.find((recent) => isAsLong(recent, line))
    return likely === undefined || likely.depth === DELTA_DEPTH_MAX ? undefined : likely
  }

  async #deltaOn(base: Uint8Array, line: Uint8Array): Promise<Uint8Array | undefined> {
    const encoder = new DeltaEncoder('', base, line)
    while (!encoder.advance(COMPARED_AT_ONCE)) await this.#yielder.due()
    const json = encoder.take(crc32(line))
    return json === undefined || json.length > line.length * DELTA_SHARE_MAX ? undefined : Buffer.from(json, 'utf8')
  }

  /** The latest version of an object takes the place of the one before. */
  #remember(latest: LongLine, before?: LongLine): void {
    const kept = [latest]
    let bytes = latest.line.length
    for (const recent of this.#recent) {
      bytes += recent.line.length
      const isOlder = recent === before || recent.sign === latest.sign
      if (!isOlder && kept.length < RECENT_LINES_MAX && bytes <= RECENT_BYTES_MAX) kept.push(recent)
    }
    this.#recent = kept
  }
}

function isAsLong(recent: LongLine, { length }: Uint8Array): boolean {
  return Math.max(recent.line.length, length) <= LENGTH_FACTOR_MAX * Math.min(recent.line.length, length)
}

function idText(batch: MovedBatch, start: number, index: number): string {
  return JSON.stringify(
    Buffer.from(batch.lines.subarray(start, start + batch.idBytes[index]))
      .toString('utf8')
      .slice(0, 64),
  )
}
