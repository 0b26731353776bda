/*
 * What a LevelDB consists of: its manifest is a log of edits (doc/impl.md, db/version_edit.cc), each a list of `tag: varint | fields`. Only which tables
 * and logs count is taken from it.
 */

export interface LiveFiles {
  /** By number. */
  readonly tables: ReadonlyMap<number, { readonly bytes: number }>
  /** Logs with this number and above hold records that are in no table yet. */
  readonly firstLog: number
  /** Whether the manifest has everything that an opening needs: its first edits do. */
  readonly isComplete: boolean
}

const TAG = {
  comparator: 1,
  logNumber: 2,
  nextFile: 3,
  lastSequence: 4,
  compactPointer: 5,
  deletedFile: 6,
  newFile: 7,
  previousLog: 9,
} as const

const NEEDED: readonly number[] = [TAG.logNumber, TAG.nextFile, TAG.lastSequence]

/** Throws `RangeError` for anything but an edit. */
export function liveFiles(edits: readonly Uint8Array[]): LiveFiles {
  const tables = new Map<number, { readonly bytes: number }>()
  let logNumber = 0
  let previousLog = 0
  const seen = new Set<number>()
  for (const edit of edits) {
    const reader = new VarintReader(edit)
    while (!reader.isAtEnd) {
      const tag = reader.varint()
      seen.add(tag)
      if (tag === TAG.logNumber) logNumber = reader.varint()
      else if (tag === TAG.previousLog) previousLog = reader.varint()
      else if (tag === TAG.nextFile || tag === TAG.lastSequence) reader.varint()
      else if (tag === TAG.comparator) reader.sized()
      else if (tag === TAG.compactPointer) {
        reader.varint()
        reader.sized()
      } else if (tag === TAG.deletedFile) {
        reader.varint()
        tables.delete(reader.varint())
      } else if (tag === TAG.newFile) readNewFile(reader, tables)
      else throw new RangeError(`an edit has the unknown tag ${tag}`)
    }
  }
  return {
    tables,
    firstLog: previousLog > 0 ? Math.min(previousLog, logNumber) : logNumber,
    isComplete: NEEDED.every((tag) => seen.has(tag)),
  }
}

function readNewFile(reader: VarintReader, tables: Map<number, { readonly bytes: number }>): void {
  reader.varint()
  const number = reader.varint()
  tables.set(number, { bytes: reader.varint() })
  reader.sized()
  reader.sized()
}

/** Numbers of seven bits a byte, the lowest first. */
export class VarintReader {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length
  }

  varint(): number {
    let value = 0
    for (let factor = 1; ; factor *= 128) {
      if (this.isAtEnd || factor > 2 ** 49) throw new RangeError('a number has no end')
      const byte = this.#bytes[this.#at++]
      value += (byte & 127) * factor
      if (byte === 0 && factor > 1) throw new RangeError('a number is longer than necessary')
      if (byte < 128) return value
    }
  }

  sized(): Uint8Array {
    return this.take(this.varint())
  }

  rest(): Uint8Array {
    return this.take(this.#bytes.length - this.#at)
  }

  take(length: number): Uint8Array {
    if (this.#at + length > this.#bytes.length) throw new RangeError('a field is cut short')
    this.#at += length
    return this.#bytes.subarray(this.#at - length, this.#at)
  }
}
