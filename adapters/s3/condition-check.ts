import { orAborted } from '../../src/async/abort.ts'
import type { S3Client } from './s3-client.ts'
import { S3Error } from './s3-error.ts'

/** Ends otherwise than a blob, so that no list shows it. */
const PROBE_NAME = 'conditional-writes'
const PROBE = Buffer.from('stowage\n')

/**
 * Refuses a store that ignores `If-None-Match: *`: two blobs of one name would replace each other there, silently. A
 * small object shows it, which the store must not put twice.
 */
export class ConditionCheck {
  readonly #client: S3Client
  readonly #key: string
  #checking: Promise<void> | undefined
  #isPassed = false

  constructor(client: S3Client) {
    this.#client = client
    this.#key = `${client.addresses.prefix}${PROBE_NAME}`
  }

  /**
   * Checks a place that was used before. Any other place may have been named by mistake, so nothing is put there yet.
   */
  async atOpening(): Promise<void> {
    if (await this.#hasProbe()) await this.beforePut()
  }

  /** Resolves once the store has passed. A check that fails is repeated at the next call. */
  async beforePut(signal?: AbortSignal): Promise<void> {
    if (this.#isPassed) return
    this.#checking ??= this.#check().finally(() => (this.#checking = undefined))
    await (signal === undefined ? this.#checking : orAborted(this.#checking, signal))
  }

  async #check(): Promise<void> {
    // Whoever puts it first succeeds, so the second put is the one that tells.
    if ((await this.#isPut()) && (await this.#isPut()))
      throw new Error(
        `${this.#client.addresses.text} ignores If-None-Match, without which blobs could replace each other`,
      )
    this.#isPassed = true
  }

  async #isPut(): Promise<boolean> {
    try {
      await this.#client.send({ method: 'PUT', key: this.#key, headers: { 'if-none-match': '*' }, body: [PROBE] })
      return true
    } catch (error) {
      if (error instanceof S3Error && error.status === 412) return false
      throw error
    }
  }

  async #hasProbe(): Promise<boolean> {
    try {
      await this.#client.send({ method: 'GET', key: this.#key })
      return true
    } catch (error) {
      if (error instanceof S3Error && error.isAbsentObject) return false
      throw error
    }
  }
}
