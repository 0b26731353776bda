import type { ProjectQuota } from '../object/graph-store.ts'
import { type Amount, amountOf } from './amounts.ts'
import { codeOf } from './expectations.ts'
import { type ProjectOracle, Violation } from './oracle.ts'
import type { Span, Upload } from './span.ts'

/** An upload to a project that has a quota. */
export interface QuotaAttempt {
  readonly upload: Upload
  /** The length of its body, if the server was told. */
  readonly bodyBytes: number
  /** One life of a server, which knows what it has under way. */
  readonly server: object
}

/**
 * The quota of a project: what is acknowledged never exceeds it, and an upload is refused only if it may not fit. The
 * project may hold more than is known: an upload that nobody was told of, and twice what two uploads brought at once.
 */
export class QuotaBook {
  readonly quota: ProjectQuota
  readonly #oracle: ProjectOracle
  readonly #isExact: () => boolean
  readonly #attempts: QuotaAttempt[] = []

  /** `isExact`: nothing that was freed came back, and nothing is damaged. */
  constructor(quota: ProjectQuota, oracle: ProjectOracle, isExact: () => boolean) {
    this.quota = quota
    this.#oracle = oracle
    this.#isExact = isExact
  }

  begin(attempt: QuotaAttempt): void {
    this.#attempts.push(attempt)
  }

  /** Whether the quota is the reason for this answer. Throws `Violation` if it says so and cannot be. */
  hasRefused(upload: Upload, error: unknown): boolean {
    const attempt = this.#attempts.find((one) => one.upload === upload)
    const code = codeOf(error)
    if (attempt === undefined || (code !== 'quota_exceeded' && code !== 'overloaded')) return false
    if (code === 'overloaded') return this.#besideMax(attempt) > 0 && this.#mayExceed(attempt, this.#besideMax(attempt))
    if (this.#mayExceed(attempt, 0)) return true
    const { objects, jsonBytes } = this.#heldMax(attempt)
    throw new Violation(
      `an upload was refused: the quota is ${JSON.stringify(this.quota)}, and at most ${objects} objects of ${jsonBytes} bytes are held`,
    )
  }

  /** Throws `Violation` if more is there for certain than may be. */
  check(): void {
    if (!this.#isExact()) return
    const span = this.#oracle.begin()
    this.#oracle.end(span)
    let [objects, jsonBytes] = [0, 0]
    for (const id of this.#oracle.ids) {
      if (!this.#oracle.isThere(id, span)) continue
      objects++
      jsonBytes += Math.min(...this.#sizesOf(id, span))
    }
    this.checkHeld({ objects, jsonBytes })
  }

  /** Throws `Violation` if this is more than may be held. */
  checkHeld({ objects, jsonBytes }: Amount): void {
    const { objectsMax = Infinity, jsonBytesMax = Infinity } = this.quota
    if (this.#isExact() && (objects > objectsMax || jsonBytes > jsonBytesMax))
      throw new Violation(
        `${objects} objects of ${jsonBytes} bytes are held, beyond the quota ${JSON.stringify(this.quota)}`,
      )
  }

  #sizesOf(id: string, span: Span): readonly number[] {
    return this.#oracle.uploads.flatMap((upload) => {
      const text = upload.texts.get(id)
      return text === undefined || !this.#oracle.mayBeThere(upload, span) ? [] : [Buffer.byteLength(text)]
    })
  }

  /** Whether the project may be full, or the upload too large for the rest, with so many bytes of others under way. */
  #mayExceed(attempt: QuotaAttempt, besideBytes: number): boolean {
    const { objectsMax = Infinity, jsonBytesMax = Infinity } = this.quota
    const held = this.#heldMax(attempt)
    const own = amountOf(attempt.upload.texts)
    const ownBytes = Math.max(own.jsonBytes, attempt.bodyBytes)
    return held.objects + own.objects > objectsMax || held.jsonBytes + besideBytes + ownBytes > jsonBytesMax
  }

  /** Bytes that other uploads may have reserved at the same server. */
  #besideMax({ upload, server }: QuotaAttempt): number {
    return this.#attempts
      .filter((other) => other.upload !== upload && other.server === server && other.upload.end > upload.start)
      .reduce((sum, { bodyBytes }) => sum + bodyBytes, 0)
  }

  /** What was settled before the upload counts once; what was not may count beside it. */
  #heldMax({ upload: own }: QuotaAttempt): Amount {
    const once = new Map<string, number>()
    let [objects, jsonBytes] = [0, 0]
    for (const upload of this.#oracle.uploads) {
      if (upload === own || !this.#oracle.mayBeThere(upload, own)) continue
      const isSettled = upload.outcome === 'acknowledged' && upload.end < own.start
      for (const [id, text] of upload.texts) {
        const bytes = Buffer.byteLength(text)
        if (!isSettled) {
          objects++
          jsonBytes += bytes
        } else if (!this.#oracle.isGone(id, own)) once.set(id, Math.max(once.get(id) ?? 0, bytes))
      }
    }
    for (const bytes of once.values()) jsonBytes += bytes
    return { objects: objects + once.size, jsonBytes }
  }
}
