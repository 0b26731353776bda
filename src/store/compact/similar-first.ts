import type { Environment, HashKey } from '../../environment.ts'
import { Yielder } from '../../async/yielder.ts'
import { hashBytes } from '../../object/id-hash.ts'
import type { MemoryLease } from '../../memory/memory-lease.ts'
import type { BufferPool } from '../../memory/buffer-pool.ts'
import { bytesOf } from '../bytes/joined.ts'
import type { SegmentReader } from '../pack/segment-reader.ts'
import type { MovedBatch } from './moved-batches.ts'

/** Objects are sorted within so many bytes of lines, if there is memory for them. */
const WINDOW_BYTES_MAX = 33_554_432
const BATCH_OBJECTS_MAX = 512
const BATCH_BYTES_MAX = 1_048_576
/** Names that are hashed between two looks at the clock. */
const NAMES_AT_ONCE = 512
/** Not a secret: which objects lie side by side changes how well they compress, and nothing else. */
const KEY: HashKey = { low: 1, high: 2 }
const UNRELATED = 0xffffffff
const OBJECTS_MAX = 2 ** 20

export interface SortingParts {
  readonly environment: Environment
  readonly memory: MemoryLease
  /** The memory of one window; a batch that is larger is one by itself. */
  readonly windowBytesMax: number
  /** The lines of all batches are in its memory, those that come and those that go. */
  readonly reader: Pick<SegmentReader, 'memory'>
}

/**
 * The same objects with those side by side that mention mostly the same others, in which case they are versions of one
 * object as a rule, and compress to little more than one of them. The sign is the least hash among the mentioned ids
 * (min-wise hashing): two objects that share 98 of 100 have the same one in 97 of 100 cases. Objects that mention
 * nothing keep their order.
 */
export async function* similarFirst(
  { environment, memory, windowBytesMax, reader }: SortingParts,
  batches: AsyncIterable<MovedBatch>,
): AsyncGenerator<MovedBatch> {
  const yielder = new Yielder(environment)
  const { bufferPool } = reader.memory
  let window = new Window(bufferPool)
  try {
    for await (const batch of batches) {
      const isFull =
        window.bytes + batch.lines.length > WINDOW_BYTES_MAX ||
        window.heldBytes + windowBytesOf(batch) > windowBytesMax ||
        window.objects + batch.count > OBJECTS_MAX
      if (isFull || !memory.tryHold(windowBytesOf(batch))) {
        yield* window.sorted(yielder)
        memory.free(window.heldBytes)
        window = new Window(bufferPool)
        await memory.hold(windowBytesOf(batch))
      }
      await window.add(batch, windowBytesOf(batch), yielder)
    }
    yield* window.sorted(yielder)
  } finally {
    memory.free(window.heldBytes)
  }
}

/** Lines and names once as they came and, of some at a time, once in their new order. */
function windowBytesOf({ lines, names, nameEnds, count }: MovedBatch): number {
  return lines.length + names.length + nameEnds.byteLength + 32 * count
}

class Window {
  bytes = 0
  heldBytes = 0
  readonly #batches: MovedBatch[] = []
  /** For each batch where its lines begin, and the number of its first object. */
  readonly #lineStarts: Uint32Array[] = []
  readonly #firsts: number[] = []
  readonly #signs: number[] = []
  readonly #bufferPool: BufferPool

  constructor(bufferPool: BufferPool) {
    this.#bufferPool = bufferPool
  }

  get objects(): number {
    return this.#signs.length
  }

  async add(batch: MovedBatch, heldBytes: number, yielder: Yielder): Promise<void> {
    this.bytes += batch.lines.length
    this.heldBytes += heldBytes
    this.#firsts.push(this.objects)
    this.#batches.push(batch)
    const starts = new Uint32Array(batch.count)
    for (let index = 1; index < batch.count; index++) starts[index] = starts[index - 1] + batch.lineBytes[index - 1]
    this.#lineStarts.push(starts)
    for (let index = 0; index < batch.count; index++) this.#signs.push(await signOf(batch, index, yielder))
  }

  async *sorted(yielder: Yielder): AsyncGenerator<MovedBatch> {
    let isFirst = this.#batches.at(0)?.beginsPart === true
    for (const numbers of this.#inRuns(this.#order())) {
      yield this.#batchOf(numbers, isFirst)
      isFirst = false
      await yielder.due()
    }
    for (const { lines } of this.#batches) this.#bufferPool.giveBack(lines)
  }

  /** The numbers of the objects by their sign, those of one sign in their order. */
  #order(): readonly number[] {
    const keys = Float64Array.from(this.#signs, (sign, number) => sign * OBJECTS_MAX + number)
    return Array.from(keys.sort(), (key) => key % OBJECTS_MAX)
  }

  *#inRuns(numbers: readonly number[]): Generator<readonly number[]> {
    let run: number[] = []
    let bytes = 0
    for (const number of numbers) {
      const { batch, index } = this.#at(number)
      const lineBytes = batch.lineBytes[index]
      if (run.length === BATCH_OBJECTS_MAX || (run.length > 0 && bytes + lineBytes > BATCH_BYTES_MAX)) {
        yield run
        run = []
        bytes = 0
      }
      run.push(number)
      bytes += lineBytes
    }
    if (run.length > 0) yield run
  }

  #at(number: number): { readonly batch: MovedBatch; readonly index: number; readonly lineStart: number } {
    let low = 0
    let high = this.#firsts.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (this.#firsts[middle] <= number) low = middle
      else high = middle - 1
    }
    const index = number - this.#firsts[low]
    return { batch: this.#batches[low], index, lineStart: this.#lineStarts[low][index] }
  }

  #joined(lines: readonly Uint8Array[]): Uint8Array {
    const length = bytesOf(lines)
    const all = this.#bufferPool.take(length) ?? Buffer.allocUnsafe(length)
    let end = 0
    for (const line of lines) {
      all.set(line, end)
      end += line.length
    }
    return all
  }

  #batchOf(numbers: readonly number[], beginsPart: boolean): MovedBatch {
    const lines: Uint8Array[] = []
    const names: Uint8Array[] = []
    const nameEnds: number[] = []
    const count = numbers.length
    const [lineBytes, textCrc32] = [new Uint32Array(count), new Uint32Array(count)]
    const [referenceEnds, claimEnds] = [new Uint32Array(count), new Uint32Array(count)]
    const idBytes = new Uint16Array(count)
    const signs = Uint32Array.from(numbers, (number) => this.#signs[number])
    let nameBytes = 0
    for (const [to, number] of numbers.entries()) {
      const { batch, index, lineStart } = this.#at(number)
      lines.push(batch.lines.subarray(lineStart, lineStart + batch.lineBytes[index]))
      lineBytes[to] = batch.lineBytes[index]
      textCrc32[to] = batch.textCrc32[index]
      idBytes[to] = batch.idBytes[index]
      const first = firstName(batch, index)
      const start = nameStart(batch, first)
      const end = nameStart(batch, batch.claimEnds[index])
      for (let name = first; name < batch.claimEnds[index]; name++)
        nameEnds.push(nameBytes + batch.nameEnds[name] - start)
      names.push(batch.names.subarray(start, end))
      nameBytes += end - start
      claimEnds[to] = nameEnds.length
      referenceEnds[to] = nameEnds.length - (batch.claimEnds[index] - batch.referenceEnds[index])
    }
    return {
      count,
      lines: this.#joined(lines),
      names: Buffer.concat(names),
      nameEnds: Uint32Array.from(nameEnds),
      lineBytes,
      textCrc32,
      idBytes,
      referenceEnds,
      claimEnds,
      beginsPart,
      blockBytes: this.#batches[0].blockBytes,
      signs,
    }
  }
}

async function signOf(batch: MovedBatch, index: number, yielder: Yielder): Promise<number> {
  let least = UNRELATED
  for (let name = firstName(batch, index); name < batch.claimEnds[index]; name++) {
    least = Math.min(least, hashBytes(batch.names, nameStart(batch, name), batch.nameEnds[name], KEY))
    if (name % NAMES_AT_ONCE === 0) await yielder.due()
  }
  return least
}

function firstName({ claimEnds }: MovedBatch, index: number): number {
  return index === 0 ? 0 : claimEnds[index - 1]
}

function nameStart({ nameEnds }: MovedBatch, name: number): number {
  return name === 0 ? 0 : nameEnds[name - 1]
}
