import { RecordMap } from '../../adapters/memory/record-map.ts'
import type { BlobInfo, Change, CommitResult, Entry, RangeBounds } from '../storage/backend.ts'
import { BlobExistsError, BlobNotFoundError, BlobRangeError } from '../storage/storage-errors.ts'
import { EPOCH_MS } from './process.ts'
import type { Random } from './random.ts'
import type { Scheduler } from './scheduler.ts'

interface StoredBlob {
  readonly bytes: Uint8Array
  readonly modifiedAtMs: number
}

/** The data that survives every process: records and blobs. Each method is one uninterrupted step. */
export class SimulatedStorage {
  readonly #nowMs: () => number
  readonly #records = new RecordMap()
  readonly #blobs = new Map<string, StoredBlob>()
  /** Blobs that a crash cut short, as long as they are there. */
  readonly #torn = new Set<string>()

  /** `nowMs`: the time of day, in milliseconds since 1970; that of the scheduler by default. */
  constructor(
    scheduler: Scheduler,
    { nowMs = () => EPOCH_MS + Math.floor(scheduler.nowMs) }: { readonly nowMs?: () => number } = {},
  ) {
    this.#nowMs = nowMs
  }

  /** Bytes of all records and blobs. */
  get sizeBytes(): number {
    let bytes = 0
    for (const { key, value } of this.slice({ gte: new Uint8Array(), lt: Uint8Array.of(0xff) }, Infinity))
      bytes += key.length + value.length
    for (const blob of this.#blobs.values()) bytes += blob.bytes.length
    return bytes
  }

  /** The value of a key; `undefined` if there is none. */
  get(key: Uint8Array): Uint8Array | undefined {
    return this.#records.get(key)
  }

  /** At most so many entries between the bounds. */
  slice(bounds: RangeBounds, max: number): Entry[] {
    return this.#records.slice(bounds, max)
  }

  /** Puts if absent; returns the existing value. */
  insert(entry: Entry): Uint8Array | undefined {
    return this.#records.insert(entry)
  }

  /** All of the change, or nothing. */
  commit(change: Change): CommitResult {
    return this.#records.commit(change)
  }

  /** Throws `BlobExistsError`. */
  checkFree(name: string): void {
    if (this.#blobs.has(name)) throw new BlobExistsError(name)
  }

  /** Throws `BlobExistsError`. */
  putBlob(name: string, chunks: readonly Uint8Array[]): { readonly sizeBytes: number } {
    this.checkFree(name)
    const whole = Buffer.concat(chunks)
    this.#blobs.set(name, { bytes: whole, modifiedAtMs: this.#nowMs() })
    return { sizeBytes: whole.length }
  }

  /** Throws `BlobNotFoundError` and `BlobRangeError`. */
  readBlob(name: string, start: number, end: number): Uint8Array {
    const blob = this.#blobs.get(name)
    if (blob === undefined) throw new BlobNotFoundError(name)
    if (end > blob.bytes.length) throw new BlobRangeError(name, end, blob.bytes.length)
    return Uint8Array.from(blob.bytes.subarray(start, end))
  }

  /** Removes a blob, if it exists. */
  removeBlob(name: string): void {
    this.#blobs.delete(name)
    this.#torn.delete(name)
  }

  /** Of the blobs with this prefix, `max` whose names follow `after`, in the order of their names. */
  listBlobs(prefix: string, after: string | undefined, max: number): BlobInfo[] {
    const names = [...this.#blobs.keys()].filter(
      (name) => name.startsWith(prefix) && (after === undefined || name > after),
    )
    return names
      .sort()
      .slice(0, max)
      .map((name) => this.#infoOf(name))
  }

  /** A crash cut a `put` short: a part of its bytes exists, and is listed. */
  tear(name: string, chunks: readonly Uint8Array[], random: Random): void {
    const whole = Buffer.concat(chunks)
    if (this.#blobs.has(name)) return
    this.putBlob(name, [whole.subarray(0, random.below(whole.length + 1))])
    this.#torn.add(name)
  }

  /** Whether a crash cut the blob of this name short. */
  isTorn(name: string): boolean {
    return this.#torn.has(name)
  }

  /** Flips one bit of one record or blob. False if there is none. */
  flip(random: Random): boolean {
    const blobs = [...this.#blobs.keys()].sort()
    const records = this.slice({ gte: new Uint8Array(), lt: Uint8Array.of(0xff) }, Infinity)
    if (records.length + blobs.length === 0) return false
    if (blobs.length > 0 && random.chance(0.4)) {
      const name = random.pick(blobs)
      const { bytes, modifiedAtMs } = this.#blobs.get(name) as StoredBlob
      this.#blobs.set(name, { bytes: flipped(bytes, random), modifiedAtMs })
    } else if (records.length > 0) {
      // Of each kind as often: there are far more objects than projects.
      const kind = random.pick([...new Set(records.map(({ key }) => key[0]))])
      const { key, value } = random.pick(records.filter(({ key }) => key[0] === kind))
      this.#records.set(key, flipped(value, random))
    }
    return true
  }

  #infoOf(name: string): BlobInfo {
    const { bytes, modifiedAtMs } = this.#blobs.get(name) as StoredBlob
    return { name, sizeBytes: bytes.length, modifiedAtMs }
  }
}

function flipped(whole: Uint8Array, random: Random): Uint8Array {
  const changed = Uint8Array.from(whole)
  if (changed.length > 0) changed[random.below(changed.length)] ^= 1 << random.below(8)
  return changed
}
