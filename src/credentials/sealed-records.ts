import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { StowageError } from '../errors.ts'
import type { Entry, RecordStore } from '../storage/backend.ts'

/*
 * Small texts among the records of a storage, so that every server on it knows them:
 *
 *   key    "a", the group and the name, each ended by 0x00
 *   value  a version byte, 12 bytes of nonce, the text under AES-256-GCM (NIST SP 800-38D) with the key as additional
 *          data, 16 bytes of tag
 *
 * Whoever can read the database reads no text without the sealing key.
 */

const KIND = 'a'
const VERSION = 1
const NONCE_BYTES = 12
const TAG_BYTES = 16
const SEALING_KEY_BYTES = 32
const CIPHER = 'aes-256-gcm'

/** How texts are sealed, and what their place is called. */
export interface SealedRecordsOptions {
  /** 32 bytes that all servers of the storage share, and that are kept outside it. */
  readonly sealingKey: Uint8Array
  /** Names the storage in messages, without secrets. */
  readonly place: string
}

/** Small texts that are created once, and that only servers with the sealing key can read. */
export class SealedRecords {
  /** Names the storage in messages. */
  readonly place: string
  readonly #records: RecordStore
  readonly #sealingKey: Uint8Array

  /** Throws `RangeError` for a key of another length. */
  constructor(records: RecordStore, { sealingKey, place }: SealedRecordsOptions) {
    if (sealingKey.length !== SEALING_KEY_BYTES)
      throw new RangeError(`the sealing key has ${sealingKey.length} bytes; it must have ${SEALING_KEY_BYTES}`)
    this.#records = records
    this.#sealingKey = sealingKey
    this.place = place
  }

  /** Names one text in messages. */
  describe(group: string, name: string): string {
    return `the record ${group}/${name} in ${this.place}`
  }

  /** In the order of their bytes. */
  async names(group: string): Promise<readonly string[]> {
    const names: string[] = []
    for await (const { name } of this.#entries(group)) names.push(name)
    return names
  }

  /** `undefined` if there is none. Throws `corrupt_data` for what was sealed with another key, or changed. */
  async read(group: string, name: string): Promise<string | undefined> {
    const key = keyOf(group, name)
    const [value] = await this.#records.getMany([key])
    return value === undefined ? undefined : this.#opened(key, value, this.describe(group, name))
  }

  /** By their names. Throws as `read` does. */
  async readAll(group: string): Promise<ReadonlyMap<string, string>> {
    const texts = new Map<string, string>()
    for await (const { name, key, value } of this.#entries(group))
      texts.set(name, this.#opened(key, value, this.describe(group, name)))
    return texts
  }

  async *#entries(group: string): AsyncGenerator<Entry & { readonly name: string }> {
    const prefix = keyOf(group)
    for await (const entries of this.#records.range({ gte: prefix, lt: endOf(prefix) }))
      for (const entry of entries)
        yield { ...entry, name: Buffer.from(entry.key.subarray(prefix.length, -1)).toString() }
  }

  /**
   * If the answer of the storage is lost, the text may be there: the caller gets the error, and a repetition finds that
   * the name is taken.
   */
  async create(group: string, name: string, text: string): Promise<boolean> {
    const key = keyOf(group, name)
    const [existing] = await this.#records.insertMany([{ key, value: this.#sealed(key, text) }])
    return existing === undefined
  }

  /** Absent names are fine. */
  async remove(group: string, name: string): Promise<void> {
    await this.#records.commit({ remove: [keyOf(group, name)] })
  }

  /** Removes a text. Of several callers one gets it, the others `undefined`. */
  async take(group: string, name: string): Promise<string | undefined> {
    const key = keyOf(group, name)
    const [value] = await this.#records.getMany([key])
    if (value === undefined) return undefined
    const text = this.#opened(key, value, this.describe(group, name))
    const taken = await this.#records.commit({ remove: [key], expect: [{ key, value }] })
    return taken.ok ? text : undefined
  }

  #sealed(key: Uint8Array, text: string): Uint8Array {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(CIPHER, this.#sealingKey, nonce, { authTagLength: TAG_BYTES }).setAAD(key)
    return Buffer.concat([
      Uint8Array.of(VERSION),
      nonce,
      cipher.update(text, 'utf8'),
      cipher.final(),
      cipher.getAuthTag(),
    ])
  }

  #opened(key: Uint8Array, value: Uint8Array, what: string): string {
    const textAt = 1 + NONCE_BYTES
    const end = value.length - TAG_BYTES
    if (value[0] === VERSION && end >= textAt)
      try {
        const nonce = value.subarray(1, textAt)
        const decipher = createDecipheriv(CIPHER, this.#sealingKey, nonce, { authTagLength: TAG_BYTES }).setAAD(key)
        decipher.setAuthTag(value.subarray(end))
        return Buffer.concat([decipher.update(value.subarray(textAt, end)), decipher.final()]).toString()
      } catch {
        // Answered below: the error of the cipher says no more than that.
      }
    throw new StowageError(
      'corrupt_data',
      `${what} was sealed with another key than this server has, or has changed; start all servers with the same sealing key`,
    )
  }
}

function keyOf(...parts: readonly string[]): Uint8Array {
  return Buffer.from(`${[KIND, ...parts].join('\0')}\0`)
}

/** The first key after all that begin with `prefix`. */
function endOf(prefix: Uint8Array): Uint8Array {
  const end = Uint8Array.from(prefix)
  end[end.length - 1] = 1
  return end
}
