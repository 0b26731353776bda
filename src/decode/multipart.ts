import { Dicer } from '@fastify/busboy'
import { REAL_ENVIRONMENT, type Environment } from '../environment.ts'
import { StowageError } from '../errors.ts'
import type { Limits } from '../limits.ts'
import { quoted } from '../object/id.ts'
import {
  type PartHeaders,
  type RawPartHeaders,
  invalidMultipart,
  partHeaderTooLarge,
  readPartHeaders,
} from './part-headers.ts'

/** Small, so that the parts which one slice can hold cost little before they are refused. */
const SLICE_BYTES = 16_384
/** RFC 2046, section 5.1.1: 1 to 70 of these characters, the last one not a space. */
const BOUNDARY = /^[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]$/
const BLANK = /^[ \t\r\n]*$/

/** One file of a multipart body. Read `bytes` before you ask for the next part; unread bytes are skipped then. */
export interface FilePart extends PartHeaders {
  /** From 0, over all parts of the body. */
  readonly index: number
  readonly bytes: AsyncIterable<Uint8Array>
}

export interface MultipartOptions {
  /** From the Content-Type header. */
  readonly boundary: string | undefined
  readonly limits: Pick<Limits, 'partsMax' | 'partHeaderBytesMax'>
  /** That of the process by default. */
  readonly environment?: Environment
}

/**
 * The files of a multipart/form-data body (RFC 7578), in order. Every part is a file or refused: none is dropped. Throws
 * `invalid_multipart`, `too_many_parts` and `part_header_too_large`. Returning early returns `body`.
 */
export async function* fileParts(body: AsyncIterable<Uint8Array>, options: MultipartOptions): AsyncGenerator<FilePart> {
  const reader = new MultipartReader(body, options)
  try {
    let files = 0
    for (let part = await reader.nextPart(); part !== undefined; part = await reader.nextPart()) {
      files++
      yield { ...part.headers, index: part.index, bytes: reader.read(part) }
      await reader.skip(part)
    }
    if (files === 0) throw invalidMultipart('it holds no part; it must hold at least one file part, best named "file"')
  } finally {
    await reader.close()
  }
}

/** A part whose headers are complete, with the content that has arrived and is not yet read. */
interface ArrivingPart {
  readonly index: number
  readonly headers: PartHeaders
  pieces: Uint8Array[]
  ended: boolean
}

/**
 * Pulls: a slice of the body goes into the parser only when everything before it has been read. It uses busboy's own
 * parser, Dicer, since busboy itself silently drops parts and hides part headers. After each slice the event loop turns
 * once, so that deferred events of the parser have arrived.
 */
class MultipartReader {
  readonly #iterator: AsyncIterator<Uint8Array>
  readonly #limits: MultipartOptions['limits']
  readonly #environment: Environment
  readonly #dicer: Dicer
  readonly #arrived: ArrivingPart[] = []
  #chunk: Uint8Array = new Uint8Array(0)
  #parts = 0
  #inHeaders = false
  #headerBytes = 0
  #closed = false
  #bodyEnded = false
  #failure: StowageError | undefined

  constructor(body: AsyncIterable<Uint8Array>, options: MultipartOptions) {
    const { boundary, limits, environment = REAL_ENVIRONMENT } = options
    if (boundary === undefined || !BOUNDARY.test(boundary)) {
      throw invalidMultipart(
        `its boundary is ${boundary === undefined ? 'missing' : quoted(boundary)}; it must be 1 to 70 characters (RFC 2046, section 5.1.1)`,
      )
    }
    this.#limits = limits
    this.#environment = environment
    this.#iterator = body[Symbol.asyncIterator]()
    const headerBytesKept = limits.partHeaderBytesMax + 2 * SLICE_BYTES
    const config = { boundary, maxHeaderSize: headerBytesKept, maxHeaderPairs: headerBytesKept }
    this.#dicer = new Dicer(config)
    this.#dicer.on('part', (stream: Dicer.PartStream) => this.#onPart(stream))
    this.#dicer.on('trailer', (bytes: Buffer) => this.#checkEpilogue(bytes))
    this.#dicer.on('finish', () => (this.#closed = true))
    this.#dicer.on('error', () => this.#fail(invalidMultipart('it ends before its closing boundary')))
  }

  async nextPart(): Promise<ArrivingPart | undefined> {
    while (this.#arrived.length === 0 && !this.#bodyEnded) await this.#feed()
    return this.#arrived.shift()
  }

  async *read(part: ArrivingPart): AsyncGenerator<Uint8Array> {
    for (;;) {
      const { pieces } = part
      part.pieces = []
      yield* pieces
      if (part.ended) return
      await this.#feed()
    }
  }

  async skip(part: ArrivingPart): Promise<void> {
    for (part.pieces = []; !part.ended; part.pieces = []) await this.#feed()
  }

  async close(): Promise<void> {
    this.#dicer.destroy()
    if (!this.#bodyEnded) await this.#iterator.return?.()
  }

  async #feed(): Promise<void> {
    const slice = await this.#nextSlice()
    if (slice === undefined) this.#dicer.end()
    else if (this.#closed) this.#checkEpilogue(slice)
    else this.#dicer.write(slice)
    await this.#environment.nextTurn()
    this.#countHeaderBytes(slice?.length ?? 0)
    if (this.#closed) this.#checkHeadersEnded()
    if (this.#bodyEnded && !this.#closed) this.#fail(invalidMultipart('it ends before its closing boundary'))
    if (this.#failure !== undefined) throw this.#failure
  }

  async #nextSlice(): Promise<Buffer | undefined> {
    while (this.#chunk.length === 0) {
      const step = await this.#iterator.next()
      this.#bodyEnded = step.done === true
      if (step.done === true) return undefined
      this.#chunk = step.value
    }
    const slice = this.#chunk.subarray(0, SLICE_BYTES)
    this.#chunk = this.#chunk.subarray(slice.length)
    return Buffer.from(slice.buffer, slice.byteOffset, slice.byteLength)
  }

  #onPart(stream: Dicer.PartStream): void {
    if (this.#failure !== undefined) return void stream.resume()
    stream.on('error', () => undefined)
    this.#checkHeadersEnded()
    const index = this.#parts++
    if (index === this.#limits.partsMax) {
      this.#fail(
        new StowageError('too_many_parts', `the multipart body has more than ${index} parts, the limit of one request`),
      )
    }
    this.#inHeaders = true
    this.#headerBytes = 0
    stream.on('header', (raw: object) => this.#onHeaders(stream, index, raw as RawPartHeaders))
    stream.resume()
  }

  #checkHeadersEnded(): void {
    if (this.#inHeaders) this.#fail(invalidMultipart(`part ${this.#parts - 1} ends inside its headers`))
  }

  #onHeaders(stream: Dicer.PartStream, index: number, raw: RawPartHeaders): void {
    this.#inHeaders = false
    if (this.#failure !== undefined) return
    try {
      const part: ArrivingPart = {
        index,
        headers: readPartHeaders(raw, `part ${index}`, this.#limits.partHeaderBytesMax),
        pieces: [],
        ended: false,
      }
      stream.on('data', (piece: Buffer | string) => part.pieces.push(piece as Buffer))
      stream.on('end', () => (part.ended = true))
      this.#arrived.push(part)
    } catch (error) {
      this.#fail(error as StowageError)
    }
  }

  /** A header block that does not end must not be waited for: Dicer would cut it in silence. */
  #countHeaderBytes(fed: number): void {
    if (!this.#inHeaders) return
    this.#headerBytes += fed
    if (this.#headerBytes > this.#limits.partHeaderBytesMax + SLICE_BYTES) {
      this.#fail(partHeaderTooLarge(`part ${this.#parts - 1}`, this.#limits.partHeaderBytesMax))
    }
  }

  /** The standard lets a reader ignore bytes after the closing boundary; here that would silently lose a part. */
  #checkEpilogue(bytes: Buffer): void {
    if (!BLANK.test(bytes.toString('latin1'))) this.#fail(invalidMultipart('bytes follow its closing boundary'))
  }

  #fail(failure: StowageError): void {
    this.#failure ??= failure
  }
}
