import { ByteList } from '../object/byte-list.ts'

const KEPT_BYTES_MAX = 1_048_576

/**
 * An object's text without anything that would break its line: runs of white space with line ends or tabs are removed,
 * raw U+0085, U+2028 and U+2029 become escapes. Everything else stays byte for byte. A text without them, the usual
 * case, is not copied.
 */
export class OneLineText {
  #source: Uint8Array = new Uint8Array(0)
  #rewritten = new ByteList(1_024)
  #takenTo = 0

  start(source: Uint8Array): void {
    this.#source = source
    this.#takenTo = 0
    if (this.#rewritten.capacityBytes > KEPT_BYTES_MAX) this.#rewritten = new ByteList(1_024)
    this.#rewritten.clear()
  }

  /** Whether anything has been removed or escaped since the last `start`. */
  get isRewritten(): boolean {
    return this.#takenTo > 0
  }

  drop(start: number, end: number): void {
    this.#take(start)
    this.#takenTo = end
  }

  escape(start: number, end: number): void {
    this.drop(start, end)
    this.#rewritten.append(
      end - start === 2
        ? ESCAPED_NEL
        : this.#source[end - 1] === 0xa8
          ? ESCAPED_LINE_SEPARATOR
          : ESCAPED_PARAGRAPH_SEPARATOR,
    )
  }

  /** The whole text; a view, valid until the next `start`. */
  finish(): Uint8Array {
    if (!this.isRewritten) return this.#source
    this.#take(this.#source.length)
    return this.#rewritten.view()
  }

  #take(end: number): void {
    this.#rewritten.append(this.#source, this.#takenTo, end)
    this.#takenTo = end
  }
}

const ESCAPED_NEL = Buffer.from('\\u0085')
const ESCAPED_LINE_SEPARATOR = Buffer.from('\\u2028')
const ESCAPED_PARAGRAPH_SEPARATOR = Buffer.from('\\u2029')
