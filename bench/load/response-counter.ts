/** What is known of an answer once it is complete. */
export interface CountedResponse {
  readonly status: number
  readonly bytes: number
}

const HEAD_BYTES_MAX = 65_536
const CR = 13
const LF = 10

type Part = 'head' | 'sized body' | 'chunk size' | 'chunk' | 'chunk end' | 'trailer' | 'done'

/**
 * Finds the end of one HTTP/1.1 response and counts the bytes of its body, without keeping or copying them: a client
 * that costs little leaves the processor to the server that it measures.
 */
export class ResponseCounter {
  #part: Part = 'head'
  #line = ''
  #left = 0
  #bytes = 0
  #status = 0
  readonly #hasBody: boolean

  /** The answer to a HEAD request has no body whatever its headers say. */
  constructor(hasBody: boolean = true) {
    this.#hasBody = hasBody
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Reads the next bytes. Returns the response once it is complete; nothing may follow it. */
  push(bytes: Buffer): CountedResponse | undefined {
    let at = 0
    while (at < bytes.length && this.#part !== 'done') {
      if (this.#part === 'sized body' || this.#part === 'chunk') at = this.#skipBody(bytes.length, at)
      else at = this.#readLines(bytes, at)
    }
    if (this.#part !== 'done') return undefined
    if (at < bytes.length) throw new Error(`${bytes.length - at} bytes follow the end of a response`)
    return { status: this.#status, bytes: this.#bytes }
  }

  #skipBody(end: number, at: number): number {
    const taken = Math.min(this.#left, end - at)
    this.#left -= taken
    this.#bytes += taken
    if (this.#left === 0) this.#part = this.#part === 'chunk' ? 'chunk end' : 'done'
    return at + taken
  }

  #readLines(bytes: Buffer, at: number): number {
    const end = bytes.indexOf(LF, at)
    const until = end === -1 ? bytes.length : end + 1
    this.#line += bytes.toString('latin1', at, until)
    if (this.#line.length > HEAD_BYTES_MAX) throw new Error('the head of a response has no end')
    if (end === -1) return until
    if (this.#part === 'head') this.#endHeadLine()
    else this.#endFramingLine()
    return until
  }

  #endHeadLine(): void {
    if (!this.#line.endsWith('\n\r\n') && !this.#line.endsWith('\n\n')) return
    const head = this.#line
    this.#line = ''
    this.#status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1] ?? Number.NaN)
    if (Number.isNaN(this.#status)) throw new Error(`not a response: ${head.slice(0, 80)}`)
    if (this.#status < 200) return
    if (!this.#hasBody || this.#status === 204 || this.#status === 304) this.#part = 'done'
    else if (/^transfer-encoding:.*\bchunked\b/im.test(head)) this.#part = 'chunk size'
    else {
      const length = /^content-length: *(\d+)/im.exec(head)?.[1]
      if (length === undefined) throw new Error('a response has neither a length nor chunks')
      this.#left = Number(length)
      this.#part = this.#left === 0 ? 'done' : 'sized body'
    }
  }

  #endFramingLine(): void {
    const line = this.#line.charCodeAt(this.#line.length - 2) === CR ? this.#line.slice(0, -2) : this.#line.slice(0, -1)
    this.#line = ''
    if (this.#part === 'chunk size') {
      this.#left = Number.parseInt(line, 16)
      if (Number.isNaN(this.#left)) throw new Error(`not the size of a chunk: ${line.slice(0, 80)}`)
      this.#part = this.#left === 0 ? 'trailer' : 'chunk'
    } else if (this.#part === 'chunk end') this.#part = 'chunk size'
    else if (line === '') this.#part = 'done'
  }
}
