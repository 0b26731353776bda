import { ByteList } from '../object/byte-list.ts'
import { IdSet } from '../object/id-set.ts'
import type { AttributeMask } from '../object/wire-types.ts'
import { ObjectScanner, type ScanListener } from './json-scanner.ts'
import { decodeString } from './json-string.ts'

const TAB = 0x09
const LF = 0x0a
const SPACE = 0x20
const COMMA = 0x2c
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

const ID = Buffer.from('id')

/**
 * The lines with only the members that the mask wants. Members keep their bytes and their order; a key counts by its
 * value, not by its escapes. `lines` are one or many whole lines `<id> TAB <json> LF` as `inspectBatches` makes them;
 * the result is a separate buffer.
 */
export function applyMask(lines: Uint8Array, mask: AttributeMask): Uint8Array {
  return new LineMask(mask).apply(lines)
}

/** Buffers of whole lines, masked as they come. */
export async function* maskLines(
  buffers: AsyncIterable<Uint8Array>,
  mask: AttributeMask,
): AsyncGenerator<Uint8Array, void, undefined> {
  const lineMask = new LineMask(mask)
  for await (const lines of buffers) yield lineMask.apply(lines)
}

/**
 * Receives the top-level keys of one line after the other. Only white space and one comma lie between a member and the
 * next key, so each key also marks the end of the member before it.
 */
class LineMask implements ScanListener {
  readonly #named: IdSet
  readonly #keepsNamed: boolean
  /** The lines were inspected when they arrived, under the limits of that time. */
  readonly #scanner = new ObjectScanner(this, Number.MAX_SAFE_INTEGER)
  #text: Uint8Array = new Uint8Array(0)
  #masked = new ByteList(0)
  #keptMembers = 0
  #keptFrom = -1

  constructor(mask: AttributeMask) {
    this.#keepsNamed = 'include' in mask
    const names = 'include' in mask ? mask.include : mask.exclude
    this.#named = new IdSet(names.length)
    for (const name of names) this.#named.add(Buffer.from(name, 'utf8'))
  }

  apply(lines: Uint8Array): Uint8Array {
    this.#masked = new ByteList(lines.length)
    for (let start = 0; start < lines.length;) {
      const textStart = lines.indexOf(TAB, start) + 1
      const end = lines.indexOf(LF, textStart)
      this.#masked.append(lines, start, textStart)
      this.#maskText(lines.subarray(textStart, end))
      start = end + 1
    }
    return this.#masked.view()
  }

  onKey(start: number, end: number, escaped: boolean, depth: number): number {
    if (depth > 1) return 0
    this.#endMember(start - 1)
    if (this.#wants(start, end, escaped)) this.#keptFrom = start - 1
    return 0
  }

  onString(): void {}
  onOther(): void {}
  onBrokenSpace(): void {}
  onLineSeparator(): void {}

  #maskText(text: Uint8Array): void {
    this.#text = text
    this.#keptMembers = 0
    this.#keptFrom = -1
    this.#masked.push(OPEN_OBJECT)
    this.#scanner.start(text)
    this.#scanner.scan(text.length)
    this.#endMember(text.length - 1)
    this.#masked.push(CLOSE_OBJECT)
    this.#masked.push(LF)
  }

  /** The open member, if it is kept, ends before the white space and the comma before `next`. */
  #endMember(next: number): void {
    if (this.#keptFrom === -1) return
    let end = next
    while (this.#text[end - 1] === SPACE || this.#text[end - 1] === COMMA) end--
    if (this.#keptMembers++ > 0) this.#masked.push(COMMA)
    this.#masked.append(this.#text, this.#keptFrom, end)
    this.#keptFrom = -1
  }

  #wants(start: number, end: number, escaped: boolean): boolean {
    const key = escaped ? decodeString(this.#text, start, end) : this.#text.subarray(start, end)
    if (key === undefined) return !this.#keepsNamed
    const isNamed = this.#named.find(key) !== -1
    return isNamed === this.#keepsNamed || ID.equals(key)
  }
}
