import { open } from 'node:fs/promises'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import { BLOCKS_MEDIA_TYPE } from '../../src/blocks/ready-blocks.ts'
import { decodeBlocks } from '../../src/decode/decode-blocks.ts'
import type { UploadSource } from '../../src/decode/wire.ts'
import { inspectBlocks } from '../../src/inspect/inspect-blocks.ts'
import { DEFAULT_LIMITS } from '../../src/limits.ts'
import { BufferPool } from '../../src/memory/buffer-pool.ts'
import { MemoryBudget } from '../../src/memory/memory-budget.ts'
import type { ObjectBatch } from '../../src/object/batch.ts'

const MEMORY_BYTES_MAX = 67_108_864
/** Of the space of young objects of each other thread. */
const YOUNG_MB = 8
/** A new thread of Node 20 does not load TypeScript as the main thread does. */
const LOAD_THIS_FILE = `import('tsx/esm/api').then(({ register }) => {
  register()
  return import(${JSON.stringify(import.meta.url)})
})`

/** The ids of some objects, one after the other. */
export interface Ids {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly lengths: Uint16Array<ArrayBuffer>
}

/** Takes the body of an upload in: yields the ids of its objects, and has synced it to the file when it ends. */
export type Intake = (pieces: AsyncIterable<Uint8Array>, file: string) => AsyncIterable<Ids>

/** On the calling thread. */
export function intakeHere(): Intake {
  const memory = new MemoryBudget(MEMORY_BYTES_MAX, { bufferPool: new BufferPool(MEMORY_BYTES_MAX) })
  const { bufferPool } = memory
  return async function* (pieces, file) {
    const { signal } = new AbortController()
    const lease = memory.open({ signal })
    const received: Uint8Array[] = []
    const source: UploadSource = {
      contentType: { mediaType: BLOCKS_MEDIA_TYPE, parameters: new Map(), text: BLOCKS_MEDIA_TYPE },
      contentEncoding: undefined,
      contentLength: undefined,
      body: noting(pieces, received),
    }
    const blocks = decodeBlocks(source, DEFAULT_LIMITS, { signal, memory: lease })
    for await (const batch of inspectBlocks(blocks, DEFAULT_LIMITS, { signal, bufferPool })) {
      yield idsOf(batch)
      bufferPool.giveBack(batch.lines)
      bufferPool.giveBack(batch.names)
    }
    lease.release()
    await writeDurably(file, received)
  }
}

/** On other threads: each body goes to the one that has least to do. */
export function intakeElsewhere(threads: number): Intake {
  const workers = Array.from({ length: threads }, () => new IntakeWorker())
  return async function* (pieces, file) {
    const received: Uint8Array<ArrayBuffer>[] = []
    for await (const piece of pieces) received.push(piece as Uint8Array<ArrayBuffer>)
    const idle = workers.reduce((least, worker) => (worker.waiting < least.waiting ? worker : least))
    yield* await idle.takeIn(received, file)
  }
}

interface Task {
  readonly pieces: readonly Uint8Array<ArrayBuffer>[]
  readonly file: string
}

class IntakeWorker {
  readonly #worker = new Worker(LOAD_THIS_FILE, { eval: true, resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB } })
  readonly #waiting: ((ids: readonly Ids[]) => void)[] = []

  constructor() {
    this.#worker.on('message', (ids: readonly Ids[]) => this.#waiting.shift()?.(ids))
  }

  get waiting(): number {
    return this.#waiting.length
  }

  takeIn(pieces: readonly Uint8Array<ArrayBuffer>[], file: string): Promise<readonly Ids[]> {
    const task: Task = { pieces, file }
    this.#worker.postMessage(task, [...new Set(pieces.map(({ buffer }) => buffer))])
    return new Promise((resolve) => this.#waiting.push(resolve))
  }
}

/** Answers tasks in their order. */
function work(port: NonNullable<typeof parentPort>): void {
  const intake = intakeHere()
  let last = Promise.resolve()
  port.on('message', ({ pieces, file }: Task) => {
    const before = last
    last = (async () => {
      const ids: Ids[] = []
      for await (const some of intake(each(pieces), file)) ids.push(some)
      await before
      port.postMessage(
        ids,
        ids.flatMap(({ bytes, lengths }) => [bytes.buffer, lengths.buffer]),
      )
    })()
  })
}

async function* each<T>(values: readonly T[]): AsyncGenerator<T> {
  for (const value of values) yield value
}

async function writeDurably(file: string, pieces: readonly Uint8Array[]): Promise<void> {
  const handle = await open(file, 'wx')
  await handle.writev(pieces)
  await handle.datasync()
  await handle.close()
}

async function* noting(pieces: AsyncIterable<Uint8Array>, received: Uint8Array[]): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) {
    received.push(piece)
    yield piece
  }
}

function idsOf({ count, lines, lineBytes, idBytes }: ObjectBatch): Ids {
  const lengths = idBytes.slice()
  const bytes = new Uint8Array(lengths.reduce((sum, length) => sum + length, 0))
  for (let index = 0, line = 0, at = 0; index < count; line += lineBytes[index], at += lengths[index++])
    bytes.set(lines.subarray(line, line + lengths[index]), at)
  return { bytes, lengths }
}

if (!isMainThread && parentPort !== null) work(parentPort)
