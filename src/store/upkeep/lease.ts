import { randomId, type Environment } from '../../environment.ts'
import type { Expectation, RecordStore } from '../../storage/backend.ts'
import { leaseKey } from '../records/keys.ts'
import { encodeLeaseBeat, encodeLeaseHolder } from '../records/records.ts'

/** A lease whose number stood still for so long is free. Its holder must look several times in that time. */
export const LEASE_MS = 90_000

interface Sighting {
  readonly holder: Uint8Array
  readonly beat: Uint8Array | undefined
  readonly sinceMs: number
}

/**
 * What one of several servers holds at a time. Its holder raises a number again and again. A server that has seen the
 * same number for the length of the lease, by its own monotonic clock, takes the lease. So clocks are never compared,
 * and a server that was stopped for longer finds its commits refused, since each expects the record of the holder.
 */
export class Lease {
  readonly #records: RecordStore
  readonly #environment: Pick<Environment, 'monotonicMs' | 'randomBytes'>
  readonly #holderKey: Uint8Array
  readonly #beatKey: Uint8Array
  #own: Uint8Array | undefined
  #beat = 0
  #heldUntilMs = -Infinity
  #seen: Sighting | undefined

  constructor(records: RecordStore, name: string, environment: Pick<Environment, 'monotonicMs' | 'randomBytes'>) {
    this.#records = records
    this.#environment = environment
    this.#holderKey = leaseKey(name, 'holder')
    this.#beatKey = leaseKey(name, 'beat')
  }

  /** What commits of the holder expect; `undefined` on a server that does not hold the lease. */
  get fence(): Expectation | undefined {
    const isHeld = this.#environment.monotonicMs() < this.#heldUntilMs
    return isHeld ? { key: this.#holderKey, value: this.#own } : undefined
  }

  /** Takes the lease if it is free, and renews it. To be called again and again, several times in `LEASE_MS`. */
  async look(): Promise<void> {
    const atMs = this.#environment.monotonicMs()
    const [holder, beat] = await this.#records.getMany([this.#holderKey, this.#beatKey])
    const isOwn = holder !== undefined && this.#own !== undefined && Buffer.compare(holder, this.#own) === 0
    if (!isOwn) {
      this.#heldUntilMs = -Infinity
      if (holder !== undefined && !this.#isLeft(holder, beat, atMs)) return
      // Noted before the commit: if its answer is lost, the next look finds out.
      this.#own = encodeLeaseHolder(this.#holderKey, randomId(this.#environment))
    }
    const put = [{ key: this.#beatKey, value: encodeLeaseBeat(this.#beatKey, ++this.#beat) }]
    if (!isOwn && this.#own !== undefined) put.push({ key: this.#holderKey, value: this.#own })
    const { ok } = await this.#records.commit({
      put,
      expect: [
        { key: this.#holderKey, value: holder },
        { key: this.#beatKey, value: beat },
      ],
    })
    this.#heldUntilMs = ok ? atMs + LEASE_MS : -Infinity
  }

  /** Leaves the lease to others at once. */
  async release(): Promise<void> {
    const { fence } = this
    this.#heldUntilMs = -Infinity
    if (fence !== undefined) await this.#records.commit({ remove: [this.#holderKey, this.#beatKey], expect: [fence] })
  }

  #isLeft(holder: Uint8Array, beat: Uint8Array | undefined, atMs: number): boolean {
    const seen = this.#seen
    if (seen !== undefined && isSame(seen.holder, holder) && isSame(seen.beat, beat))
      return atMs - seen.sinceMs >= LEASE_MS
    this.#seen = { holder, beat, sinceMs: atMs }
    return false
  }
}

function isSame(one: Uint8Array | undefined, other: Uint8Array | undefined): boolean {
  return one === undefined || other === undefined ? one === other : Buffer.compare(one, other) === 0
}
