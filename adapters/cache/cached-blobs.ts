import { SingleFlight } from '../../src/async/single-flight.ts'
import type { BlobInfo, BlobStore, CallOptions, PutOptions, ReadOptions } from '../../src/storage/backend.ts'
import { BLOB_READ_BYTES_MAX } from '../../src/storage/backend.ts'
import { CLUSTER_FOLDER } from '../../src/storage/cluster-id.ts'
import type { BlobDriver } from '../../src/storage/driver.ts'
import type { CacheFolder } from './cache-folder.ts'
import { PIECE_BYTES } from './piece-file.ts'
import type { CachedBlob } from './pieces.ts'

/** A read while it is put together. */
interface Assembly {
  readonly name: string
  readonly start: number
  readonly end: number
  readonly blob: CachedBlob
  readonly target: Uint8Array
  readonly signal: AbortSignal
}

/** Bytes that are being read from the source. */
interface Fetch {
  readonly from: number
  readonly to: number
  readonly bytes: Promise<Uint8Array>
}

const NEVER: AbortSignal = new AbortController().signal
const NOTHING: Uint8Array = new Uint8Array(0)

/** Reads come from the folder as far as it has them; what it lacks is read from the source and kept. */
export class CachedBlobs implements BlobDriver {
  readonly #source: BlobStore
  readonly #folder: CacheFolder
  readonly #fetches = new SingleFlight<Uint8Array>()
  readonly #fetching = new Map<CachedBlob, Set<Fetch>>()

  constructor(source: BlobStore, folder: CacheFolder) {
    this.#source = source
    this.#folder = folder
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
    for (let at = start; at < end; at = pieceEnd(at)) {
      signal.throwIfAborted()
      const prefix = await this.#takeHeld(assembly, at)
      if (prefix !== undefined) missing ??= { from: at, prefix }
      else if (missing !== undefined) {
        await this.#takeFetched(assembly, missing, at)
        missing = undefined
      }
    }
    if (missing !== undefined) await this.#takeFetched(assembly, missing, end)
  }

  /**
   * Copies what the read needs of the piece at byte `at`, if the folder has all of it. Otherwise returns what it has of
   * the beginning of the piece.
   */
  async #takeHeld({ blob, start, end, target }: Assembly, at: number): Promise<Uint8Array | undefined> {
    const number = Math.floor(at / PIECE_BYTES)
    const [from, to] = [at % PIECE_BYTES, Math.min(end, pieceEnd(at)) - pieceStart(at)]
    const unwritten = blob.unwritten.get(number)
    if (unwritten !== undefined) {
      copyOverlap(unwritten, pieceStart(at), target, start)
      return unwritten.length < to ? unwritten : undefined
    }
    const piece = blob.pieces.get(number)
    if (piece === undefined) return NOTHING
    if (piece.sizeBytes < to) return (await this.#folder.readAll(piece)) ?? NOTHING
    const part = target.subarray(at - start, at - start + to - from)
    return (await this.#folder.read(piece, from, part)) ? undefined : NOTHING
  }

  /** Fetches from the end of the prefix, which is the beginning of the first piece, up to byte `to`. */
  async #takeFetched(
    { name, start, blob, target, signal }: Assembly,
    { from, prefix }: { readonly from: number; readonly prefix: Uint8Array },
    to: number,
  ): Promise<void> {
    const first = pieceStart(from)
    const beingFetched = prefix.length > 0 ? undefined : this.#beingFetched(blob, first, from)
    let held = beingFetched ?? Promise.resolve(prefix)
    for (let at = beingFetched === undefined ? first + prefix.length : from; at < to;) {
      const until = Math.min(to, pieceStart(at) + BLOB_READ_BYTES_MAX)
      copyOverlap(await this.#fetch(name, at, until, held, signal), at, target, start)
      held = Promise.resolve(NOTHING)
      at = until
    }
    copyOverlap(prefix, first, target, start)
  }

  /** The bytes from `from` to `to` if they are the end of a fetch under way: only what follows must be fetched then. */
  #beingFetched(blob: CachedBlob, from: number, to: number): Promise<Uint8Array> | undefined {
    if (from === to) return undefined
    for (const fetch of this.#fetching.get(blob) ?? []) {
      if (fetch.from > from || fetch.to !== to) continue
      const held = fetch.bytes.then((bytes) => bytes.subarray(from - fetch.from))
      // Whoever fetches the same bytes may have begun, and then nobody asks for these.
      held.catch(() => undefined)
      return held
    }
    return undefined
  }

  /** Once for all who want the same bytes. `held` ends where they begin, in the same piece: nothing is kept without it. */
  #fetch(name: string, from: number, to: number, held: Promise<Uint8Array>, signal: AbortSignal): Promise<Uint8Array> {
    return this.#fetches.run(`${name} ${from} ${to}`, signal, async (signal) => {
      // Entered before the blob is read: if it is removed meanwhile, nothing of it is kept.
      const blob = this.#folder.pieces.enter(name)
      const bytes = this.#source.read(name, from, to, { signal })
      const forget = this.#remember(blob, { from, to, bytes })
      void Promise.all([bytes, held])
        .then(([bytes, held]) => this.#keep(blob, held, bytes, from))
        .catch(() => undefined)
        .finally(() => {
          forget()
          this.#folder.pieces.leave(blob)
        })
      return bytes
    })
  }

  #remember(blob: CachedBlob, fetch: Fetch): () => void {
    const fetching = this.#fetching.get(blob) ?? new Set()
    this.#fetching.set(blob, fetching.add(fetch))
    return () => {
      fetching.delete(fetch)
      if (fetching.size === 0) this.#fetching.delete(blob)
    }
  }

  /** `bytes` begin at byte `from` of the blob, behind `held`. */
  #keep(blob: CachedBlob, held: Uint8Array, bytes: Uint8Array, from: number): void {
    for (let at = from; at < from + bytes.length; at = pieceEnd(at)) {
      const part = bytes.subarray(at - from, pieceEnd(at) - from)
      const isBehindHeld = at === from && held.length > 0
      this.#folder.keep(blob, Math.floor(at / PIECE_BYTES), isBehindHeld ? Buffer.concat([held, part]) : part)
    }
  }
}

function pieceStart(at: number): number {
  return at - (at % PIECE_BYTES)
}

function pieceEnd(at: number): number {
  return pieceStart(at) + PIECE_BYTES
}

/** Copies what two stretches of one blob have in common; each is given by its bytes and its first byte's place. */
function copyOverlap(source: Uint8Array, sourceStart: number, target: Uint8Array, targetStart: number): void {
  const from = Math.max(sourceStart, targetStart)
  const to = Math.min(sourceStart + source.length, targetStart + target.length)
  if (from < to) target.set(source.subarray(from - sourceStart, to - sourceStart), from - targetStart)
}
