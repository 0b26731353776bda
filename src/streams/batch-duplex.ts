import { Duplex } from 'node:stream'
import { type Done, Handoff } from './handoff.ts'
import { Puller } from './puller.ts'
import { definedOptions } from './defined-options.ts'

/** Options of a transform. */
export interface TransformOptions {
  /** Bytes, or objects on the side that has objects, that are held ahead of the reader. Node's defaults otherwise. */
  readonly readableHighWaterMark?: number | undefined
  /** Bytes or objects that are held ahead on the way in. Node's defaults otherwise. */
  readonly writableHighWaterMark?: number | undefined
  /** Destroys the stream with an `AbortError`. */
  readonly signal?: AbortSignal | undefined
}

type Modes = { readonly readableObjectMode: boolean; readonly writableObjectMode: boolean }

/** A transform made from a function from an iterable to an iterable. An error of the function destroys the stream. */
export class BatchDuplex<In, Out> extends Duplex {
  readonly #handoff = new Handoff<In>()
  readonly #puller: Puller<Out>
  #final: Done | undefined
  #isOver = false

  constructor(
    make: (source: AsyncIterable<In>, signal: AbortSignal) => AsyncIterable<readonly Out[]>,
    options: TransformOptions & Modes,
  ) {
    super(definedOptions(options))
    this.#puller = new Puller(
      this,
      (signal) => make(this.#handoff, signal),
      () => this.#end(),
    )
  }

  override _write(chunk: In, _encoding: BufferEncoding, done: Done): void {
    this.#handoff.write(chunk, done)
  }

  /**
   * As in a `Transform`, the way in finishes with the function: pipelines stop looking at the stream then, and an error
   * that came later would be nobody's.
   */
  override _final(done: Done): void {
    this.#handoff.end()
    if (this.#isOver) done()
    else this.#final = done
  }

  override _read(): void {
    this.#puller.pull()
  }

  override _destroy(error: Error | null, done: Done): void {
    // The function may wait for a chunk: it ends with the source.
    this.#handoff.end()
    this.#puller.close(error, done)
  }

  #end(): void {
    this.#isOver = true
    this.#final?.()
  }
}
