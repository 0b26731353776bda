import type { Entry, RecordStore } from '../backend.ts'
import { batchesOf, type ConformanceFaults, freshPrefix, type Session } from './case.ts'

/** The context of a rule about records; its keys start with a prefix of its own. */
export class RecordContext {
  readonly #session: Session<RecordStore>
  readonly #prefix: Buffer = Buffer.from(freshPrefix())

  constructor(session: Session<RecordStore>) {
    this.#session = session
  }

  get store(): RecordStore {
    return this.#session.store
  }

  /** The store of a second server over the same place. */
  get other(): RecordStore {
    return this.#session.other
  }

  get faults(): ConformanceFaults {
    return this.#session.faults
  }

  async reopen(): Promise<void> {
    await this.#session.reopen()
  }

  key(suffix: string | readonly number[]): Uint8Array {
    return Buffer.concat([this.#prefix, typeof suffix === 'string' ? Buffer.from(suffix) : Buffer.from(suffix)])
  }

  /** A key of exactly `bytes` bytes. */
  longKey(bytes: number): Uint8Array {
    return Buffer.concat([this.#prefix, Buffer.alloc(bytes - this.#prefix.length, 'k')])
  }

  entry(suffix: string, value: string = `value of ${suffix}`): Entry {
    return { key: this.key(suffix), value: bytesOf(value) }
  }

  /** `count` entries whose keys ascend. */
  entries(count: number): Entry[] {
    return Array.from({ length: count }, (_, at) => this.entry(String(at).padStart(6, '0'), String(at)))
  }

  /** All keys of this context that do not continue with 0xff bytes only. */
  get all(): { readonly gte: Uint8Array; readonly lt: Uint8Array } {
    return { gte: this.#prefix, lt: this.key(Array.from({ length: 40 }, () => 0xff)) }
  }

  /** The remaining keys of `all`, in their order. */
  async suffixes(bounds: Partial<Parameters<RecordStore['range']>[0]> = {}): Promise<string[]> {
    const entries = await batchesOf(this.store.range({ ...this.all, ...bounds }))
    return entries.map(({ key }) => Buffer.from(key.subarray(this.#prefix.length)).toString('latin1'))
  }

  async value(suffix: string): Promise<string | undefined> {
    const [value] = await this.store.getMany([this.key(suffix)])
    return value && Buffer.from(value).toString()
  }
}

export function bytesOf(text: string): Uint8Array {
  return Buffer.from(text)
}
