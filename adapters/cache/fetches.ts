import { orAborted } from '../../src/async/abort.ts'
import { BLOB_READ_BYTES_MAX, type BlobStore } from '../../src/storage/backend.ts'
import type { CacheFolder } from './cache-folder.ts'
import { pieceEnd, pieceNumber, pieceStart } from './piece-file.ts'
import type { CachedBlob } from './pieces.ts'

/** A read while it is put together. */
export interface Assembly {
  readonly name: string
  readonly start: number
  readonly end: number
  readonly blob: CachedBlob
  readonly target: Uint8Array
  readonly signal: AbortSignal
}

/** A piece whose beginning is the end of one fetch, and whose rest is the beginning of another one. */
interface Seam {
  readonly blob: CachedBlob
  readonly number: number
  /** Copies of what came first. */
  beginning?: Uint8Array
  rest?: Uint8Array
  isOver: boolean
}

/** What belongs before the first byte of a fetch, as far as that byte is not the first one of a piece. */
type Head = { readonly prefix: Uint8Array } | { readonly seam: Seam }

/** Bytes of a blob that the source is being asked for. */
interface Fetch {
  readonly from: number
  readonly to: number
  readonly head: Head
  /** Of those who want the end of it for a piece of theirs. */
  readonly seams: Seam[]
  /** Who wants the same bytes, besides the one who asked for them. */
  readonly followers: Set<Assembly>
  /** Resolves when they are in all targets, or with `false` if the one who asked went away. */
  readonly done: Promise<boolean>
}

const NOTHING: Uint8Array = new Uint8Array(0)
const NO_HEAD: Head = { prefix: NOTHING }

/**
 * Reads of the source. Their bytes go where the first caller wants them. Before that caller has them, and may change
 * them, they are copied for the others and for the folder.
 */
export class Fetches {
  readonly #source: BlobStore
  readonly #folder: CacheFolder
  readonly #running = new Map<CachedBlob, Set<Fetch>>()

  constructor(source: BlobStore, folder: CacheFolder) {
    this.#source = source
    this.#folder = folder
  }

  /**
   * Fills the part of the target up to byte `to`. Reads from the end of `prefix`, which is the beginning of the piece of
   * byte `from`; or from byte `from` if a fetch under way brings what precedes it in the piece.
   */
  async fill(assembly: Assembly, from: number, prefix: Uint8Array, to: number): Promise<void> {
    const first = pieceStart(from)
    const seam = prefix.length > 0 || from === first ? undefined : this.#seamAt(assembly.blob, from)
    let head: Head = seam === undefined ? { prefix } : { seam }
    for (let at = seam === undefined ? first + prefix.length : from; at < to;) {
      const until = Math.min(to, pieceStart(at) + BLOB_READ_BYTES_MAX)
      await this.#fetch(assembly, { from: at, to: until, head })
      head = NO_HEAD
      at = until
    }
    copyOverlap(prefix, first, assembly)
  }

  async #fetch(assembly: Assembly, wanted: Pick<Fetch, 'from' | 'to' | 'head'>): Promise<void> {
    for (;;) {
      assembly.signal.throwIfAborted()
      const same = this.#runningOf(assembly.blob).find(({ from, to }) => from === wanted.from && to === wanted.to)
      // The other fetch brings the piece of the seam.
      if (same !== undefined && 'seam' in wanted.head) wanted.head.seam.isOver = true
      if (await (same === undefined ? this.#start(assembly, wanted).done : followed(same, assembly))) return
    }
  }

  #start(assembly: Assembly, wanted: Pick<Fetch, 'from' | 'to' | 'head'>): Fetch {
    const { blob } = assembly
    const fetch: Fetch = {
      ...wanted,
      seams: [],
      followers: new Set(),
      // Not before `fetch` exists.
      done: Promise.resolve().then(() => this.#run(assembly, fetch)),
    }
    const running = this.#running.get(blob) ?? new Set()
    this.#running.set(blob, running.add(fetch))
    return fetch
  }

  async #run(assembly: Assembly, fetch: Fetch): Promise<boolean> {
    const { name, start, end, target, signal } = assembly
    const { from, to } = fetch
    const isWithin = start <= from && to <= end
    const into = isWithin ? target.subarray(from - start, to - start) : this.#folder.memory.take(to - from)
    try {
      const bytes = await this.#source.read(name, from, to, { signal, into })
      this.#forget(assembly.blob, fetch)
      for (const reader of [assembly, ...fetch.followers]) copyOverlap(bytes, from, reader)
      this.#keep(assembly.blob, fetch, bytes)
      // Not after a failure: the source may still be writing into it.
      if (into !== undefined && !isWithin) this.#folder.memory.giveBack(into)
      return true
    } catch (error) {
      this.#forget(assembly.blob, fetch)
      for (const seam of seamsOf(fetch)) seam.isOver = true
      if (!signal.aborted || fetch.followers.size === 0) throw error
      return false
    }
  }

  #runningOf(blob: CachedBlob): readonly Fetch[] {
    return [...(this.#running.get(blob) ?? [])]
  }

  #forget(blob: CachedBlob, fetch: Fetch): void {
    const running = this.#running.get(blob)
    running?.delete(fetch)
    if (running?.size === 0) this.#running.delete(blob)
  }

  /** With a fetch under way that ends at byte `at`, and has what precedes it in its piece. */
  #seamAt(blob: CachedBlob, at: number): Seam | undefined {
    const before = this.#runningOf(blob).find(({ from, to }) => to === at && from <= pieceStart(at))
    if (before === undefined) return undefined
    const seam = { blob, number: pieceNumber(at), isOver: false }
    before.seams.push(seam)
    return seam
  }

  #keep(blob: CachedBlob, fetch: Fetch, bytes: Uint8Array): void {
    const { from, to, head, seams } = fetch
    for (let at = from; at < to; at = pieceEnd(at)) {
      const part = bytes.subarray(at - from, pieceEnd(at) - from)
      const isBegun = at !== pieceStart(at)
      if (isBegun && 'seam' in head) this.#join(head.seam, 'rest', part)
      else if (!isBegun && pieceEnd(at) > to && seams.some(({ isOver }) => !isOver))
        for (const seam of seams) this.#join(seam, 'beginning', part)
      else this.#folder.keep(blob, pieceNumber(at), isBegun && 'prefix' in head ? [head.prefix, part] : [part])
    }
  }

  /** Keeps the piece when both parts of it have come. */
  #join(seam: Seam, which: 'beginning' | 'rest', bytes: Uint8Array): void {
    if (seam.isOver) return
    const other = which === 'rest' ? seam.beginning : seam.rest
    if (other === undefined) seam[which] = this.#folder.copyOf([bytes])
    else {
      this.#folder.keep(seam.blob, seam.number, which === 'rest' ? [other, bytes] : [bytes, other])
      this.#folder.memory.giveBack(other)
      seam.isOver = true
    }
  }
}

/** Whether the bytes came. */
async function followed(fetch: Fetch, assembly: Assembly): Promise<boolean> {
  fetch.followers.add(assembly)
  try {
    return await orAborted(fetch.done, assembly.signal)
  } finally {
    fetch.followers.delete(assembly)
  }
}

function seamsOf({ head, seams }: Fetch): readonly Seam[] {
  return 'seam' in head ? [head.seam, ...seams] : [...seams]
}

/** Copies what the target lacks of the bytes, which begin at byte `from` of the blob. */
export function copyOverlap(bytes: Uint8Array, from: number, { start, target }: Assembly): void {
  const [first, last] = [Math.max(from, start), Math.min(from + bytes.length, start + target.length)]
  if (first >= last || isSameMemory(bytes.subarray(first - from), target.subarray(first - start))) return
  target.set(bytes.subarray(first - from, last - from), first - start)
}

function isSameMemory(one: Uint8Array, other: Uint8Array): boolean {
  return one.buffer === other.buffer && one.byteOffset === other.byteOffset
}
