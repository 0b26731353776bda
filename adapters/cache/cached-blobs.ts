import type { BlobInfo, BlobStore, CallOptions, PutOptions, ReadOptions } from '../../src/storage/backend.ts'

import { CLUSTER_FOLDER } from '../../src/storage/cluster-id.ts'
import type { BlobDriver } from '../../src/storage/driver.ts'
import type { CacheFolder } from './cache-folder.ts'
import { type Assembly, copyOverlap, Fetches } from './fetches.ts'
import { pieceEnd, pieceNumber, pieceStart } from './piece-file.ts'

const NEVER: AbortSignal = new AbortController().signal
const NOTHING: Uint8Array = new Uint8Array(0)

/** Reads come from the folder as far as it has them; what it lacks is read from the source and kept. */
export class CachedBlobs implements BlobDriver {
  readonly #source: BlobStore
  readonly #folder: CacheFolder
  readonly #fetches: Fetches

  constructor(source: BlobStore, folder: CacheFolder) {
    this.#source = source
    this.#folder = folder
    this.#fetches = new Fetches(source, folder)
  }

  async put(name: string, content: AsyncIterable<Uint8Array>, options: PutOptions): Promise<{ sizeBytes: number }> {
    // Another server may have removed a blob of this name.
    await this.#folder.remove(name)
    return this.#source.put(name, content, options)
  }

  async read(name: string, start: number, end: number, options: ReadOptions): Promise<Uint8Array> {
    // What tells whose blobs these are must be seen in the source itself.
    if (start === end || name.startsWith(CLUSTER_FOLDER)) return this.#source.read(name, start, end, options)
    const blob = this.#folder.pieces.enter(name)
    const target = options.into ?? Buffer.allocUnsafeSlow(end - start)
    try {
      await this.#assemble({ name, start, end, blob, target, signal: options.signal ?? NEVER })
      return target
    } finally {
      this.#folder.pieces.leave(blob)
    }
  }

  async remove(names: readonly string[]): Promise<void> {
    await this.#source.remove(names)
    for (const name of names) await this.#folder.remove(name)
  }

  list(prefix: string, options: CallOptions): AsyncIterable<readonly BlobInfo[]> {
    return this.#source.list(prefix, options)
  }

  /** Runs of pieces that lack bytes are fetched by one read of the source each. */
  async #assemble(assembly: Assembly): Promise<void> {
    const { start, end, signal } = assembly
    let missing: { readonly from: number; readonly prefix: Uint8Array } | undefined
    const fetchTo = async (to: number): Promise<void> => {
      if (missing !== undefined) await this.#fetches.fill(assembly, missing.from, missing.prefix, to)
      missing = undefined
    }
    for (let at = start; at < end; at = pieceEnd(at)) {
      signal.throwIfAborted()
      const prefix = await this.#takeHeld(assembly, at)
      if (prefix === undefined) await fetchTo(at)
      else missing ??= { from: at, prefix }
    }
    await fetchTo(end)
  }

  /**
   * Copies what the read needs of the piece at byte `at`, if the folder has all of it. Otherwise returns what it has of
   * the beginning of the piece.
   */
  async #takeHeld(assembly: Assembly, at: number): Promise<Uint8Array | undefined> {
    const { blob, start, end, target } = assembly
    const number = pieceNumber(at)
    const [from, to] = [at - pieceStart(at), Math.min(end, pieceEnd(at)) - pieceStart(at)]
    const unwritten = blob.unwritten.get(number)
    if (unwritten !== undefined) {
      copyOverlap(unwritten, pieceStart(at), assembly)
      // Its memory is used again once it is written.
      return unwritten.length < to ? Uint8Array.from(unwritten) : undefined
    }
    const piece = blob.pieces.get(number)
    if (piece === undefined) return NOTHING
    if (piece.sizeBytes < to) return (await this.#folder.readAll(piece)) ?? NOTHING
    const part = target.subarray(at - start, at - start + to - from)
    return (await this.#folder.read(piece, from, part)) ? undefined : NOTHING
  }
}
