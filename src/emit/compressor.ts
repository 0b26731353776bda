import { crc32 } from 'node:zlib'
import { type DeflatePool, deflatedBytesMax } from '../compression/deflate-pool.ts'
import type { Fragment, ReusedMemory } from '../object/selection.ts'
import type { Pacer } from './pacer.ts'

/** Lines as raw DEFLATE, with the facts that the end of a gzip stream needs. */
export type DeflatedFragment = Extract<Fragment, { readonly deflated: Uint8Array }>

/** The bytes compressed at once: enough for a good ratio, few enough to keep all cores busy. */
const SEGMENT_BYTES = 65_536
/** With less room than this, compressed bytes are copied out of the pool's buffers. */
const COPY_ROOM_BYTES_MAX = 524_288
/** Stored bytes that may wait behind a segment that is being compressed. */
const WAITING_BYTES_MAX = 1_048_576

/**
 * The fragments in their order, with lines compressed on the way. Lines are cut into segments that do not depend on how
 * they arrived. Each segment is compressed separately in the pool, with twice as many under way as can run at once.
 * Fragments that are stored compressed pass unchanged. Lines that are compressed are given back to `memory`. When `pacer` says that a heartbeat is due, nothing is held back.
 */
export async function* deflateFragments(
  batches: AsyncIterable<readonly Fragment[]>,
  options: {
    readonly pool: DeflatePool
    readonly signal: AbortSignal
    readonly pacer?: Pacer
    readonly roomBytes?: () => number
    readonly memory?: ReusedMemory | undefined
  },
): AsyncGenerator<readonly DeflatedFragment[]> {
  const { pool, signal, pacer, roomBytes = (): number => Infinity, memory } = options
  const line = new FragmentLine(pool, roomBytes, memory)
  for await (const batch of batches) {
    signal.throwIfAborted()
    for (const piece of piecesOf(batch)) {
      line.add(piece)
      while (line.isFull) yield await line.takeFirst()
    }
    if (pacer?.dueInMs === 0) yield await line.takeAll()
    else if (line.compressing === 0) yield line.takeReady()
  }
  yield await line.takeAll()
}

/** The fragments, with lines in pieces of a segment at most. */
function* piecesOf(batch: readonly Fragment[]): Generator<Fragment> {
  for (const fragment of batch) {
    if ('deflated' in fragment) yield fragment
    else
      for (let at = 0; at < fragment.lines.length; at += SEGMENT_BYTES)
        yield { lines: fragment.lines.subarray(at, at + SEGMENT_BYTES) }
  }
}

/** Fragments in their order, some of them still being compressed. */
class FragmentLine {
  readonly #pool: DeflatePool
  readonly #roomBytes: () => number
  readonly #memory: ReusedMemory | undefined
  #waiting: (DeflatedFragment | Promise<DeflatedFragment>)[] = []
  #waitingBytes = 0
  #compressing = 0
  #lines: Uint8Array[] = []
  #linesBytes = 0

  constructor(pool: DeflatePool, roomBytes: () => number, memory: ReusedMemory | undefined) {
    this.#pool = pool
    this.#roomBytes = roomBytes
    this.#memory = memory
  }

  get compressing(): number {
    return this.#compressing
  }

  get isFull(): boolean {
    const roomBytes = this.#roomBytes()
    const segments = Math.max(1, Math.min(2 * this.#pool.concurrency, Math.floor(roomBytes / SEGMENT_BYTES)))
    return (
      this.#compressing >= segments ||
      (this.#compressing > 0 && this.#waitingBytes >= Math.min(WAITING_BYTES_MAX, roomBytes))
    )
  }

  /**
   * Lines of a segment at most; compressing starts when a segment is complete, or something that is not lines follows.
   */
  add(fragment: Fragment): void {
    if ('deflated' in fragment) {
      this.#startSegment()
      this.#waiting.push(fragment)
      this.#waitingBytes += fragment.deflated.length
      return
    }
    const room = SEGMENT_BYTES - this.#linesBytes
    this.#addLines(fragment.lines.subarray(0, room))
    if (this.#linesBytes === SEGMENT_BYTES) this.#startSegment()
    this.#addLines(fragment.lines.subarray(room))
  }

  /** Only when nothing is being compressed. */
  takeReady(): readonly DeflatedFragment[] {
    const ready = this.#waiting as DeflatedFragment[]
    this.#waiting = []
    this.#waitingBytes = 0
    return ready
  }

  /** Up to the first segment that is being compressed, that one included. */
  async takeFirst(): Promise<readonly DeflatedFragment[]> {
    const count = this.#waiting.findIndex((fragment) => fragment instanceof Promise) + 1
    const taken = await settled(this.#waiting.splice(0, count))
    for (const fragment of taken.slice(0, -1)) this.#waitingBytes -= fragment.deflated.length
    this.#compressing--
    return taken
  }

  async takeAll(): Promise<readonly DeflatedFragment[]> {
    this.#startSegment()
    const all = await settled(this.#waiting)
    this.#compressing = 0
    this.takeReady()
    return all
  }

  #addLines(lines: Uint8Array): void {
    if (lines.length === 0) return
    this.#lines.push(lines)
    this.#linesBytes += lines.length
  }

  #startSegment(): void {
    if (this.#linesBytes === 0) return
    const raw = this.#lines.length === 1 ? this.#lines[0] : this.#joinedLines()
    this.#lines = []
    this.#linesBytes = 0
    const compressing = this.#deflated(raw)
    // The error is thrown where the fragment is taken. Until then, or if nothing takes it, the rejection must not count
    // as unhandled.
    compressing.catch(() => undefined)
    this.#waiting.push(compressing)
    this.#compressing++
  }

  #joinedLines(): Uint8Array {
    const all = this.#memory?.take(this.#linesBytes) ?? new Uint8Array(this.#linesBytes)
    let at = 0
    for (const lines of this.#lines) {
      all.set(lines, at)
      at += lines.length
      this.#memory?.giveBack(lines)
    }
    return all
  }

  /** The result is a part of a larger buffer. A slow reader would keep that buffer from others. */
  async #deflated(raw: Uint8Array): Promise<DeflatedFragment> {
    const isCopied = this.#roomBytes() < COPY_ROOM_BYTES_MAX
    const memory = this.#memory?.take(deflatedBytesMax(raw.length))
    const compressing = this.#pool.deflate(raw, memory)
    const [rawBytes, checksum] = [raw.length, crc32(raw)]
    const made = await compressing
    const deflated = isCopied ? Uint8Array.from(made) : made
    this.#memory?.giveBack(raw)
    if (memory !== undefined)
      this.#memory?.giveBack(memory.subarray(deflated.buffer === memory.buffer ? deflated.length : 0))
    return { deflated, rawBytes, crc32: checksum }
  }
}

async function settled(
  fragments: readonly (DeflatedFragment | Promise<DeflatedFragment>)[],
): Promise<readonly DeflatedFragment[]> {
  const all: DeflatedFragment[] = []
  for (const fragment of fragments) all.push(fragment instanceof Promise ? await fragment : fragment)
  return all
}
