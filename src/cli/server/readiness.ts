import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '../../logger.ts'
import type { ObjectService } from '../../service/object-service.ts'
import type { StorageBackend } from '../../storage/backend.ts'
import { isStorageError } from '../../storage/storage-errors.ts'

/** A half is asked at most so often, however often somebody asks for the health. */
const FRESH_MS = 1_000
/** A half that takes longer does not answer. */
const ANSWER_MS_MAX = 3_000
/** Nothing has these names. To be told so is an answer, and no cache can give it in the place of the storage. */
const ABSENT_KEY: Uint8Array = Buffer.from('health\0')
const ABSENT_BLOB = 'health'

/** Whether a server can answer requests: its service is open, and both halves of its storage answered a moment ago. */
export class Readiness {
  readonly #service: Pick<ObjectService, 'status'>
  readonly #probes: readonly Probe[]

  constructor(service: Pick<ObjectService, 'status'>, { records, blobs }: StorageBackend, logger: Logger) {
    this.#service = service
    this.#probes = [
      new Probe('the records', () => records.getMany([ABSENT_KEY]), logger),
      new Probe('the blobs', () => blobs.read(ABSENT_BLOB, 0, 1).catch(unlessAbsent), logger),
    ]
  }

  async isReady(): Promise<boolean> {
    if (this.#service.status().state !== 'ready') return false
    const answers = await Promise.all(this.#probes.map((probe) => probe.isAnswered()))
    return answers.every(Boolean)
  }
}

/** Asks one half, at most once at a time: a half that does not answer must not collect questions. */
class Probe {
  readonly #what: string
  readonly #ask: () => Promise<unknown>
  readonly #logger: Logger
  #asking: Promise<boolean> | undefined
  #askedAtMs = 0
  #answer = { isGood: true, atMs: Number.NEGATIVE_INFINITY }
  #isToldAway = false

  constructor(what: string, ask: () => Promise<unknown>, logger: Logger) {
    this.#what = what
    this.#ask = ask
    this.#logger = logger
  }

  async isAnswered(): Promise<boolean> {
    const { isGood: wasGood, atMs } = this.#answer
    const ageMs = performance.now() - atMs
    if (ageMs < FRESH_MS) return wasGood
    if (this.#asking === undefined) {
      this.#askedAtMs = performance.now()
      this.#asking = this.#asked().finally(() => (this.#asking = undefined))
    }
    // Whoever asks often waits for no storage: the answer that is on its way comes in time for the next question.
    return wasGood && ageMs < FRESH_MS + ANSWER_MS_MAX ? true : this.#inTime(this.#asking)
  }

  async #inTime(asking: Promise<boolean>): Promise<boolean> {
    const stop = new AbortController()
    const leftMs = Math.max(0, this.#askedAtMs + ANSWER_MS_MAX - performance.now())
    const late = delay(leftMs, undefined, { signal: stop.signal }).then(
      () => this.#away(new Error(`no answer within ${ANSWER_MS_MAX} ms`)),
      () => false,
    )
    const isGood = await Promise.race([asking, late])
    stop.abort()
    return isGood
  }

  async #asked(): Promise<boolean> {
    const isGood = await this.#ask().then(
      () => this.#there(),
      (error: unknown) => this.#away(error),
    )
    this.#answer = { isGood, atMs: performance.now() }
    return isGood
  }

  #there(): true {
    if (this.#isToldAway) this.#logger.warn?.({}, `${this.#what} can be used again`)
    this.#isToldAway = false
    return true
  }

  /** Told once, however often somebody asks meanwhile. */
  #away(err: unknown): false {
    if (!this.#isToldAway) this.#logger.warn?.({ err }, `${this.#what} cannot be used, so this server is not ready`)
    this.#isToldAway = true
    return false
  }
}

function unlessAbsent(error: unknown): void {
  if (!isStorageError(error, 'BlobNotFoundError')) throw error
}
