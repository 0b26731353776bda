import { crc32 } from 'node:zlib'
import type { BufferPool } from '../../memory/buffer-pool.ts'
import { PACKED_ID_BYTES } from '../../object/hex-id.ts'
import { corrupt } from '../bytes/byte-codec.ts'
import {
  type BlockDirectory,
  type ByteTable,
  CODEC_DELTA,
  CODEC_RAW_DEFLATE,
  DIRECTORY_COLUMNS,
  PACKED_IDS,
  type PackTables,
  type PackTrailer,
  type Rows,
  SECTION_HEADER_BYTES,
  type SectionName,
  SECTIONS,
} from './pack-format.ts'
import { StoredIds } from './stored-ids.ts'

const WORD_BYTES = 4

/** A section: `start` and `length` of its content count bytes. */
interface Section {
  readonly name: SectionName
  readonly count: number
  readonly start: number
  readonly length: number
}

/**
 * Reads sections that are not compressed. The tables are views of `bytes` where its alignment allows; ids that are
 * packed there are unpacked into memory that `buffers` lends. Throws `corrupt_data`; a block of a codec that this
 * release does not know is found when `directory` is first read.
 */
export function decodeSections(
  bytes: Uint8Array,
  trailer: Pick<PackTrailer, 'blocks' | 'objects' | 'features'>,
  buffers?: BufferPool,
): PackTables {
  return new DecodedSections(bytes.byteOffset % WORD_BYTES === 0 ? bytes : Uint8Array.from(bytes), trailer, buffers)
}

/**
 * Views of sections, each made when it is first read: a walk reads few columns of very many packs, so most views would
 * only be garbage. The constructor finds sections that do not fit.
 */
class DecodedSections implements PackTables {
  readonly objects: number
  readonly blocks: number
  readonly #bytes: Uint8Array
  readonly #words: Uint32Array
  readonly #sections: Record<SectionName, Section>
  readonly #buffers: BufferPool | undefined
  readonly #hasPackedIds: boolean
  #directory: BlockDirectory | undefined
  #lineBytes: Uint32Array | undefined
  #textCrc32: Uint32Array | undefined
  #ids: ByteTable | undefined
  #references: Rows | undefined
  #claims: Rows | undefined
  #externals: ByteTable | undefined

  /** `bytes` begin at a multiple of four bytes. */
  constructor(
    bytes: Uint8Array,
    { blocks, objects, features }: Pick<PackTrailer, 'blocks' | 'objects' | 'features'>,
    buffers: BufferPool | undefined,
  ) {
    this.objects = objects
    this.blocks = blocks
    this.#bytes = bytes
    this.#words = new Uint32Array(bytes.buffer, bytes.byteOffset, Math.floor(bytes.length / WORD_BYTES))
    this.#sections = sectionsOf(bytes, this.#words)
    this.#buffers = buffers
    this.#hasPackedIds = (features & PACKED_IDS) !== 0
    this.#check()
  }

  get directory(): BlockDirectory {
    return (this.#directory ??= this.#readDirectory())
  }

  get lineBytes(): Uint32Array {
    return (this.#lineBytes ??= this.#wordsOf(this.#sections.lines, 0, this.objects))
  }

  get textCrc32(): Uint32Array {
    return (this.#textCrc32 ??= this.#wordsOf(this.#sections.lines, this.objects, this.objects))
  }

  get ids(): ByteTable {
    const { ids } = this.#sections
    if (!this.#hasPackedIds) return (this.#ids ??= this.#byteTable(ids, this.objects))
    return (this.#ids ??= new StoredIds(this.#contentOf(ids), this.#buffers))
  }

  get references(): Rows {
    return (this.#references ??= this.#rows(this.#sections.references))
  }

  get claims(): Rows {
    return (this.#claims ??= this.#rows(this.#sections.claims))
  }

  get externals(): ByteTable {
    const { externals } = this.#sections
    return (this.#externals ??= this.#byteTable(externals, externals.count))
  }

  #check(): void {
    const { blocks, objects } = this
    const { directory, lines, ids, references, claims, externals } = this.#sections
    if (directory.count !== blocks || lines.count !== objects) throw corrupt('the tables of a pack do not fit together')
    checkWords(directory, DIRECTORY_COLUMNS.length * blocks)
    checkWords(lines, 2 * objects)
    if (this.#hasPackedIds) {
      if (ids.length !== objects * PACKED_ID_BYTES) throw endsElsewhere(ids)
    } else this.#checkByteTable(ids, objects)
    this.#checkRows(references)
    this.#checkRows(claims)
    this.#checkByteTable(externals, externals.count)
  }

  #checkRows(section: Section): void {
    checkWords(section, this.objects + this.#lastEnd(section, this.objects))
  }

  #checkByteTable(section: Section, count: number): void {
    if (this.#lastEnd(section, count) !== section.length - count * WORD_BYTES) throw endsElsewhere(section)
  }

  /** The last of the `count` ends that the section begins with. */
  #lastEnd(section: Section, count: number): number {
    checkWords(section, count)
    return count === 0 ? 0 : this.#words[section.start / WORD_BYTES + count - 1]
  }

  #readDirectory(): BlockDirectory {
    const { blocks } = this
    const column = (index: number): Uint32Array => this.#wordsOf(this.#sections.directory, index * blocks, blocks)
    const codecs = column(0)
    for (const codec of codecs) {
      if (codec !== CODEC_RAW_DEFLATE && codec !== CODEC_DELTA)
        throw corrupt(`a pack has a block of codec ${codec}, which this release does not know`)
    }
    return {
      codecs,
      offsets: column(1),
      storedBytes: column(2),
      rawBytes: column(3),
      objectEnds: column(4),
      idBytes: column(5),
      rawCrc32: column(6),
      storedCrc32: column(7),
    }
  }

  #rows(section: Section): Rows {
    const targets = this.#lastEnd(section, this.objects)
    return { ends: this.#wordsOf(section, 0, this.objects), targets: this.#wordsOf(section, this.objects, targets) }
  }

  #byteTable(section: Section, count: number): ByteTable {
    return { ends: this.#wordsOf(section, 0, count), bytes: this.#contentOf(section, count * WORD_BYTES) }
  }

  #wordsOf({ start }: Section, first: number, count: number): Uint32Array {
    const from = start / WORD_BYTES + first
    return this.#words.subarray(from, from + count)
  }

  #contentOf({ start, length }: Section, from = 0): Uint8Array {
    return this.#bytes.subarray(start + from, start + length)
  }
}

function sectionsOf(bytes: Uint8Array, words: Uint32Array): Record<SectionName, Section> {
  const sections: Partial<Record<SectionName, Section>> = {}
  let at = 0
  for (let kind = 0; kind < SECTIONS.length; kind++) {
    const name = SECTIONS[kind]
    const start = at + SECTION_HEADER_BYTES
    const header = at / WORD_BYTES
    const length = words[header + 1]
    if (start > bytes.length || words[header] !== kind || start + length > bytes.length)
      throw corrupt(`section ${name} of a pack is not where it should be`)
    if (crc32(bytes.subarray(start, start + length)) !== words[header + 3])
      throw corrupt(`section ${name} of a pack does not match its CRC-32`)
    sections[name] = { name, count: words[header + 2], start, length }
    at = start + length + (-length & 3)
  }
  return sections as Record<SectionName, Section>
}

function checkWords({ name, length }: Section, count: number): void {
  if (count * WORD_BYTES > length) throw corrupt(`section ${name} of a pack is too short for its contents`)
}

function endsElsewhere({ name }: Section): Error {
  return corrupt(`section ${name} of a pack does not end where it should`)
}
