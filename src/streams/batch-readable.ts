import { Readable } from 'node:stream'
import type { Done } from './handoff.ts'
import { type OpenSource, Puller } from './puller.ts'
import { definedOptions } from './defined-options.ts'

/** Options of a readable stream. */
export interface SourceOptions {
  /**
   * Bytes that are made ahead of the reader; in object mode, objects. Node's defaults: 65,536 bytes and 16 objects. One
   * batch may go over it.
   */
  readonly highWaterMark?: number | undefined
  /** Destroys the stream with an `AbortError`. */
  readonly signal?: AbortSignal | undefined
}

/** Bytes or objects from an iterable of batches, as a stream. Nothing is made before it is read. */
export class BatchReadable<T> extends Readable {
  readonly #puller: Puller<T>

  constructor(open: OpenSource<T>, options: SourceOptions & { readonly objectMode: boolean }) {
    super(definedOptions(options))
    this.#puller = new Puller(this, open)
  }

  override _read(): void {
    this.#puller.pull()
  }

  override _destroy(error: Error | null, done: Done): void {
    this.#puller.close(error, done)
  }
}
