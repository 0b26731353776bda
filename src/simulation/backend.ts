import { onAbort } from '../async/abort.ts'
import {
  type BlobInfo,
  type BlobStore,
  type CallOptions,
  type Change,
  type CommitResult,
  CORE_RECORD_LIMITS,
  type Entry,
  type PutOptions,
  type RangeBounds,
  type RecordLimits,
  type RecordStore,
  type StorageBackend,
} from '../storage/backend.ts'
import type { FaultInjector } from './faults.ts'
import type { SimulatedProcess } from './process.ts'
import type { Random } from './random.ts'
import type { Scheduler } from './scheduler.ts'
import type { SimulatedStorage } from './storage.ts'

/** The environment of a connection. */
export interface SimulatedBackendParts {
  /** The data that survives the process. */
  readonly storage: SimulatedStorage
  /** Decides when each call resolves. */
  readonly scheduler: Scheduler
  /** The caller. */
  readonly process: SimulatedProcess
  /** Of this connection alone. */
  readonly random: Random
  /** Decides which call fails, and how. */
  readonly faults: FaultInjector
  /** Called when a fault kills the process that called, or all. */
  readonly onCrash: (kind: 'crash' | 'powerLoss') => void
}

const LATENCY_MS_MAX = 4
const SLOW_MS_MAX = 30_000
/** Of the first batch, at most; later ones are larger, so that others come between few. */
const RANGE_BATCH_ENTRIES = 8
const BATCH_DOUBLINGS_MAX = 6
const LIST_BATCH_BLOBS = 4

/** One call that is under way. */
interface Call {
  /** Its remaining effects, each one separate. */
  readonly steps: (() => void)[]
  readonly isWrite: boolean
}

/** A blob whose content is being read. */
interface OpenPut {
  readonly name: string
  readonly chunks: Uint8Array[]
}

/**
 * One process's connection to a simulated storage: both seams. The scheduler decides when each call takes effect and
 * when it is answered, and faults decide whether it is. Answered calls stay, as the seam promises; of unanswered ones a
 * crash keeps any part.
 */
export class SimulatedBackend implements StorageBackend {
  /** Small records, with conditional commits. */
  readonly records: RecordStore
  /** Large immutable blobs. */
  readonly blobs: BlobStore
  readonly #calls: Calls

  constructor(parts: SimulatedBackendParts) {
    this.#calls = new Calls(parts)
    this.records = new SimulatedRecords(this.#calls, parts)
    this.blobs = new SimulatedBlobs(this.#calls, parts)
  }

  /** As `StorageBackend.close`. */
  close(): Promise<void> {
    return Promise.resolve()
  }

  /**
   * Call it when the process has died: any part of its unfinished writes takes effect, and blobs that it was putting
   * may be torn.
   */
  sever(): void {
    this.#calls.sever()
  }
}

/** The unanswered calls of one process to the storage. */
class Calls {
  readonly #parts: SimulatedBackendParts
  readonly #calls = new Set<Call>()
  readonly #openPuts = new Set<OpenPut>()

  constructor(parts: SimulatedBackendParts) {
    this.#parts = parts
  }

  sever(): void {
    const { random, storage } = this.#parts
    for (const { steps, isWrite } of this.#calls) {
      if (!isWrite) continue
      const isKept = random.chance(0.5)
      for (const step of steps) if (steps.length === 1 ? isKept : random.chance(0.5)) attempt(step)
    }
    for (const { name, chunks } of this.#openPuts) if (random.chance(0.5)) storage.tear(name, chunks, random)
    this.#calls.clear()
    this.#openPuts.clear()
  }

  /** Makes the steps of one call, in one or two goes, and answers. */
  call<T>(
    label: string,
    { signal, isWrite = false }: CallOptions & { readonly isWrite?: boolean },
    steps: readonly (() => void)[],
    answer: () => T,
  ): Promise<T> {
    const { process, random, faults, storage } = this.#parts
    if (!process.isAlive) return new Promise(() => undefined)
    const fault = faults.next(random)
    if (fault === 'flip') storage.flip(random)
    const call: Call = { steps: [...steps], isWrite }
    this.#calls.add(call)
    return new Promise<T>((resolve, reject) => {
      const unregister = signal && onAbort(signal, () => this.#abort(call, () => reject(signal.reason as Error)))
      const settle = (act: () => void): void => {
        if (!this.#calls.delete(call)) return
        unregister?.()
        act()
      }
      const isBefore = random.chance(0.5)
      const refuse = (message: string, code?: string): void =>
        settle(() => reject(Object.assign(new Error(message), { code })))
      const finish = (): void =>
        settle(() => {
          try {
            resolve(answer())
          } catch (error) {
            reject(error)
          }
        })
      const makeSteps = (count: number): void => {
        for (const step of call.steps.splice(0, count)) attempt(step)
      }
      this.#later(label, fault === 'slow' ? random.below(SLOW_MS_MAX) : 0, call, () => {
        if ((fault === 'crash' || fault === 'powerLoss') && isBefore) return this.#parts.onCrash(fault)
        if (fault === 'error') return refuse('the connection was refused')
        if (isWrite && faults.isDiskFull) return refuse('no space left on device', 'ENOSPC')
        if (fault === 'hang' && isBefore) return undefined
        if (fault === 'partial' && isWrite && call.steps.length > 1) {
          for (const step of call.steps.splice(0)) if (random.chance(0.5)) attempt(step)
          return refuse('the connection was reset')
        }
        const isInTwoGoes = call.steps.length > 1 && random.chance(0.3)
        makeSteps(isInTwoGoes ? random.between(1, call.steps.length - 1) : call.steps.length)
        return this.#later(`${label} ends`, 0, call, () => {
          makeSteps(call.steps.length)
          if (fault === 'crash' || fault === 'powerLoss') return this.#parts.onCrash(fault)
          if (fault === 'lostAnswer' || fault === 'partial') return refuse('the connection was reset')
          return fault === 'hang' ? undefined : finish()
        })
      })
    })
  }

  putBegan(name: string): OpenPut {
    const open: OpenPut = { name, chunks: [] }
    this.#openPuts.add(open)
    return open
  }

  putEnded(open: OpenPut): void {
    this.#openPuts.delete(open)
  }

  #later(label: string, delayMs: number, call: Call, act: () => void): void {
    const { scheduler, process, random } = this.#parts
    const latencyMs = delayMs + random.below(LATENCY_MS_MAX * 8) / 8
    scheduler.schedule(latencyMs, `${label} ${process.name}`, () => {
      if (this.#calls.has(call)) act()
    })
  }

  /** The caller goes; a write that is on its way may still take effect. */
  #abort(call: Call, reject: () => void): void {
    if (!this.#calls.delete(call)) return
    const { scheduler, random } = this.#parts
    if (call.isWrite && random.chance(0.5))
      scheduler.schedule(random.below(LATENCY_MS_MAX), 'abandoned write', () => call.steps.forEach(attempt))
    reject()
  }
}

/** An error of a step is the answer of its call, and does not concern the scheduler. */
function attempt(step: () => void): void {
  try {
    step()
  } catch {
    // The step keeps its own failure for the answer.
  }
}

class SimulatedRecords implements RecordStore {
  readonly limits: RecordLimits = CORE_RECORD_LIMITS
  readonly #calls: Calls
  readonly #parts: SimulatedBackendParts

  constructor(calls: Calls, parts: SimulatedBackendParts) {
    this.#calls = calls
    this.#parts = parts
  }

  getMany(keys: readonly Uint8Array[], options: CallOptions = {}): Promise<readonly (Uint8Array | undefined)[]> {
    const values = Array.from<Uint8Array | undefined>({ length: keys.length })
    const steps = keys.map((key, i) => () => void (values[i] = this.#parts.storage.get(key)))
    return this.#calls.call('getMany', options, steps, () => values)
  }

  async *range(bounds: RangeBounds, options: CallOptions = {}): AsyncGenerator<readonly Entry[]> {
    let [{ gte, lt }, left] = [bounds, bounds.limit ?? Infinity]
    for (let batch = 0; left > 0; batch++) {
      const batchEntries = RANGE_BATCH_ENTRIES * 2 ** Math.min(batch, BATCH_DOUBLINGS_MAX)
      const max = Math.min(left, 1 + this.#parts.random.below(batchEntries))
      let found: readonly Entry[] = []
      const step = (): void => void (found = this.#parts.storage.slice({ ...bounds, gte, lt }, max))
      await this.#calls.call('range', options, [step], () => undefined)
      const last = found.at(-1)
      if (last === undefined) return
      yield found
      left -= found.length
      if (bounds.reverse === true) lt = last.key
      else gte = Buffer.concat([last.key, Uint8Array.of(0)])
    }
  }

  insertMany(entries: readonly Entry[], options: CallOptions = {}): Promise<readonly (Uint8Array | undefined)[]> {
    const held = Array.from<Uint8Array | undefined>({ length: entries.length })
    const steps = entries.map((entry, i) => () => void (held[i] = this.#parts.storage.insert(entry)))
    return this.#calls.call('insertMany', { ...options, isWrite: true }, steps, () => held)
  }

  commit(change: Change, options: CallOptions = {}): Promise<CommitResult> {
    let result: CommitResult = { ok: true }
    const step = (): void => void (result = this.#parts.storage.commit(change))
    return this.#calls.call('commit', { ...options, isWrite: true }, [step], () => result)
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

class SimulatedBlobs implements BlobStore {
  readonly readBytesPreferred = 1_048_576
  readonly #calls: Calls
  readonly #parts: SimulatedBackendParts

  constructor(calls: Calls, parts: SimulatedBackendParts) {
    this.#calls = calls
    this.#parts = parts
  }

  async put(
    name: string,
    content: AsyncIterable<Uint8Array>,
    options: PutOptions = {},
  ): Promise<{ sizeBytes: number }> {
    const { storage } = this.#parts
    const write = { ...options, isWrite: true }
    const open = this.#calls.putBegan(name)
    try {
      await this.#answerOf('put', write, () => storage.checkFree(name))
      for await (const chunk of content) {
        open.chunks.push(Uint8Array.from(chunk))
        await this.#answerOf('put chunk', { signal: options.signal }, () => undefined)
      }
      return await this.#answerOf('put publishes', write, () => storage.putBlob(name, open.chunks))
    } finally {
      this.#calls.putEnded(open)
    }
  }

  read(name: string, start: number, end: number, options: CallOptions = {}): Promise<Uint8Array> {
    return this.#answerOf('read', options, () => this.#parts.storage.readBlob(name, start, end))
  }

  remove(names: readonly string[]): Promise<void> {
    const steps = names.map((name) => () => this.#parts.storage.removeBlob(name))
    return this.#calls.call('remove', { isWrite: true }, steps, () => undefined)
  }

  async *list(prefix: string, options: CallOptions = {}): AsyncGenerator<readonly BlobInfo[]> {
    let after: string | undefined
    for (;;) {
      const max = 1 + this.#parts.random.below(LIST_BATCH_BLOBS)
      const found = await this.#answerOf('list', options, () => this.#parts.storage.listBlobs(prefix, after, max))
      if (found.length === 0) return
      yield found
      after = found.at(-1)?.name
    }
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  /** A call of one step; its answer is the step's result or error. */
  #answerOf<T>(label: string, options: CallOptions & { readonly isWrite?: boolean }, step: () => T): Promise<T> {
    let answer = (): T => {
      throw new Error('the step was not made')
    }
    const remembered = (): void => {
      try {
        const value = step()
        answer = () => value
      } catch (error) {
        answer = () => {
          throw error
        }
      }
    }
    return this.#calls.call(label, options, [remembered], () => answer())
  }
}
