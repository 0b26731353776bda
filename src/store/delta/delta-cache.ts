import { crc32 } from 'node:zlib'
import type { DeflatePool } from '../../compression/deflate-pool.ts'
import type { MemoryLease } from '../../memory/memory-lease.ts'
import type { Fragment } from '../../object/selection.ts'

type DeflatedFragment = Extract<Fragment, { readonly deflated: Uint8Array }>

/** Lines that are compressed together, as in answers that are not kept. */
const PIECE_BYTES = 65_536
/** One answer may take so much of all bytes. */
const ANSWER_SHARE = 2

interface Kept {
  readonly fragments: readonly DeflatedFragment[]
  readonly bytes: number
}

/** The delta answers that were asked for last, compressed, under a bound of bytes. */
export class DeltaCache {
  readonly #bytesMax: number
  readonly #deflate: DeflatePool
  /** The one that was used last is the last. */
  readonly #kept = new Map<string, Kept>()
  #keptBytes = 0

  constructor(bytesMax: number, deflate: DeflatePool) {
    this.#bytesMax = bytesMax
    this.#deflate = deflate
  }

  find(key: string): readonly DeflatedFragment[] | undefined {
    const kept = this.#kept.get(key)
    if (kept === undefined) return undefined
    this.#kept.delete(key)
    this.#kept.set(key, kept)
    return kept.fragments
  }

  /**
   * The same fragments, compressed as long as they may be kept. They are kept under `key` once the last was taken, unless
   * they are too many, their memory cannot be leased meanwhile, or `isGood` says in the end that they are not.
   */
  async *keeping(
    key: string,
    batches: AsyncIterable<readonly Fragment[]>,
    memory: MemoryLease,
    isGood: () => boolean,
  ): AsyncGenerator<readonly Fragment[]> {
    let fragments: DeflatedFragment[] | undefined = []
    let bytes = 0
    for await (const batch of batches) {
      if (fragments === undefined) {
        yield batch
        continue
      }
      const deflated = await this.#deflated(batch)
      const batchBytes = deflated.reduce((sum, fragment) => sum + fragment.deflated.length, 0)
      bytes += batchBytes
      if (bytes > this.#bytesMax / ANSWER_SHARE || !memory.tryHold(batchBytes)) fragments = undefined
      else fragments.push(...deflated)
      yield deflated
    }
    if (fragments !== undefined && isGood()) this.#keep(key, { fragments, bytes })
  }

  clear(): void {
    this.#kept.clear()
    this.#keptBytes = 0
  }

  /** In memory of their own: what is handed over may be a view of a larger buffer. */
  #deflated(batch: readonly Fragment[]): Promise<DeflatedFragment[]> {
    const all: Promise<DeflatedFragment>[] = []
    for (const fragment of batch) {
      if ('deflated' in fragment)
        all.push(Promise.resolve({ ...fragment, deflated: Uint8Array.from(fragment.deflated) }))
      else
        for (let at = 0; at < fragment.lines.length; at += PIECE_BYTES)
          all.push(this.#piece(fragment.lines.subarray(at, at + PIECE_BYTES)))
    }
    return Promise.all(all)
  }

  async #piece(lines: Uint8Array): Promise<DeflatedFragment> {
    const deflated = Uint8Array.from(await this.#deflate.deflate(lines))
    return { deflated, rawBytes: lines.length, crc32: crc32(lines) }
  }

  #keep(key: string, kept: Kept): void {
    this.#keptBytes += kept.bytes - (this.#kept.get(key)?.bytes ?? 0)
    this.#kept.delete(key)
    this.#kept.set(key, kept)
    for (const [oldest, { bytes }] of this.#kept) {
      if (this.#keptBytes <= this.#bytesMax) return
      this.#kept.delete(oldest)
      this.#keptBytes -= bytes
    }
  }
}
