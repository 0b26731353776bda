import { Writable } from 'node:stream'
import { type Done, Handoff, notifyWhenSettled } from './handoff.ts'
import { textOf } from './object-text.ts'
import { definedOptions } from './defined-options.ts'

/** Options of an upload stream. */
export interface SinkOptions {
  /**
   * Bytes that are taken ahead of the store; in object mode, objects. Node's defaults: 16,384 or 65,536 bytes, by its
   * version, and 16 objects.
   */
  readonly highWaterMark?: number | undefined
  /** Destroys the stream with an `AbortError`. */
  readonly signal?: AbortSignal | undefined
}

type Upload<S> = (body: AsyncIterable<Uint8Array>, signal: AbortSignal) => Promise<S>

/** In object mode, texts are handed on in pieces of this size. */
const PIECE_BYTES = 65_536
const OPEN = Buffer.from('[')
const COMMA = Buffer.from(',')
const CLOSE = Buffer.from(']')
const EMPTY = Buffer.from('[]')

/**
 * An upload as a stream. `finish` means that everything is durable; a stream that is destroyed before leaves nothing.
 */
export class UploadWritable<S> extends Writable {
  readonly #handoff = new Handoff<Uint8Array>()
  readonly #controller = new AbortController()
  readonly #upload: Upload<S>
  #summary: S | undefined
  #settled: Promise<void> | undefined
  #pieces: Uint8Array[] = []
  #pieceBytes = 0
  #objects = 0

  constructor(upload: Upload<S>, options: SinkOptions & { readonly objectMode: boolean }) {
    super(definedOptions(options))
    this.#upload = upload
  }

  /** The summary of the upload, from `finish` on. */
  get summary(): S | undefined {
    return this.#summary
  }

  override _construct(done: Done): void {
    this.#settled = this.#upload(this.#handoff, this.#controller.signal).then((summary) => {
      this.#summary = summary
    })
    this.#settled.catch((error: Error) => this.destroy(error))
    done()
  }

  override _write(chunk: unknown, _encoding: BufferEncoding, done: Done): void {
    if (!this.writableObjectMode) return this.#handoff.write(chunk as Uint8Array, done)
    try {
      this.#add(chunk)
    } catch (error) {
      return done(error as Error)
    }
    this.#handOn(PIECE_BYTES, done)
  }

  override _writev(chunks: readonly { readonly chunk: unknown }[], done: Done): void {
    if (!this.writableObjectMode) {
      const pieces = chunks.map(({ chunk }) => chunk as Uint8Array)
      return this.#handoff.write(pieces.length === 1 ? pieces[0] : Buffer.concat(pieces), done)
    }
    try {
      for (const { chunk } of chunks) this.#add(chunk)
    } catch (error) {
      return done(error as Error)
    }
    this.#handOn(PIECE_BYTES, done)
  }

  override _final(done: Done): void {
    if (this.writableObjectMode) this.#pieces.push(this.#objects === 0 ? EMPTY : CLOSE)
    this.#handOn(0, () => this.#handoff.end())
    notifyWhenSettled(this.#settled ?? Promise.resolve(), done)
  }

  override _destroy(reason: Error | null, done: Done): void {
    this.#controller.abort(reason ?? new Error('the upload stream was destroyed'))
    notifyWhenSettled(this.#settled ?? Promise.resolve(), () => done(reason))
  }

  /** Throws `invalid_object` for anything but an object. */
  #add(object: unknown): void {
    const text = textOf(object)
    this.#pieces.push(this.#objects++ === 0 ? OPEN : COMMA, text)
    this.#pieceBytes += text.length + 1
  }

  #handOn(fromBytes: number, done: Done): void {
    if (this.#pieceBytes < fromBytes || (fromBytes === 0 && this.#pieces.length === 0)) return done()
    const bytes = Buffer.concat(this.#pieces)
    this.#pieces = []
    this.#pieceBytes = 0
    this.#handoff.write(bytes, done)
  }
}
