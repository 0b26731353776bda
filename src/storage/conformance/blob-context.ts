import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { BlobInfo, BlobStore } from '../backend.ts'
import { batchesOf, type ConformanceFaults, freshPrefix, type Session } from './case.ts'

/** The context of a rule about blobs; its names start with a segment of its own. */
export class BlobContext {
  readonly #session: Session<BlobStore>
  readonly #folder: string = freshPrefix()

  constructor(session: Session<BlobStore>) {
    this.#session = session
  }

  get store(): BlobStore {
    return this.#session.store
  }

  /** The store of a second server over the same place. */
  get other(): BlobStore {
    return this.#session.other
  }

  get faults(): ConformanceFaults {
    return this.#session.faults
  }

  async reopen(): Promise<void> {
    await this.#session.reopen()
  }

  name(rest: string): string {
    return `${this.#folder}/${rest}`
  }

  async put(rest: string, bytes: Uint8Array): Promise<void> {
    await this.store.put(this.name(rest), contentOf(bytes))
  }

  async list(prefix: string = ''): Promise<BlobInfo[]> {
    return batchesOf(this.store.list(this.name(prefix)))
  }

  /** The names below this context's segment, without it, sorted. */
  async names(prefix: string = ''): Promise<string[]> {
    return (await this.list(prefix)).map(({ name }) => name.slice(this.#folder.length + 1)).toSorted()
  }
}

/** `bytes` in chunks of uneven sizes, some of them empty. */
export async function* contentOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  const sizes = [1, 0, 65_536, 7, 300_000, 1_048_577]
  for (let [from, at] = [0, 0]; from < bytes.length; from += sizes[at++ % sizes.length])
    yield bytes.subarray(from, from + sizes[at % sizes.length])
}

/** Content that cannot be guessed from its place, so that a wrong offset shows. */
export function noise(bytes: number): Uint8Array {
  return randomBytes(bytes)
}

/** Says how the two differ, and not by millions of digits. */
export function sameContent(actual: Uint8Array, expected: Uint8Array, what: string): void {
  assert.equal(
    actual.length,
    expected.length,
    `${what}: must return ${expected.length} bytes, but returned ${actual.length}`,
  )
  if (Buffer.compare(actual, expected) === 0) return
  const at = expected.findIndex((byte, index) => byte !== actual[index])
  assert.fail(`${what}: byte ${at} must be ${expected[at]}, but is ${actual[at]}`)
}

/** Content that yields `bytes` and then calls `end`; it records whether it was released. */
export class WatchedContent implements AsyncIterable<Uint8Array> {
  closed = false
  readonly #bytes: Uint8Array
  readonly #end: () => Promise<void>

  constructor(bytes: Uint8Array, end: () => Promise<void>) {
    this.#bytes = bytes
    this.#end = end
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    const chunks = contentOf(this.#bytes)
    return {
      next: async () => {
        const next = await chunks.next()
        if (next.done === true) await this.#end()
        this.closed ||= next.done === true
        return next
      },
      return: async () => {
        this.closed = true
        return { done: true, value: undefined }
      },
    }
  }
}
