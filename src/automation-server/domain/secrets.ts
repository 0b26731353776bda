import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import type { JsonObject } from '../../automation/author/run-data.ts'
import type { InputValues } from '../../automation/author/inputs/description.ts'
import { StowageError } from '../../errors.ts'
import { quoted } from '../../object/id.ts'

/** The key that seals secret inputs: 32 bytes, and a name that is stored with the sealed inputs. */
export interface SecretKey {
  /** 1 to 64 characters of `A-Z a-z 0-9 _ -`. */
  readonly id: string
  /** 32 random bytes. */
  readonly key: Uint8Array
}

/** Keys that can change while the service runs. */
export interface SecretKeySource {
  /**
   * The keys: the first one seals, all of them open. Asked when the storage is opened, and again and again while the
   * service runs.
   */
  read(): Promise<readonly SecretKey[]>
  /** Told which of the older keys seal nothing any more. */
  release?(keyIds: readonly string[]): Promise<void>
}

/** Inputs as they are kept: secrets shown as `******` in `inputs`, and sealed beside them by name. */
export interface SealedInputs {
  readonly inputs: JsonObject
  readonly sealed: Readonly<Record<string, string>>
}

/** The owner of sealed inputs: they open nowhere else. */
export interface SealedFor {
  readonly projectId: string
  readonly automationId: string
}

export const REDACTED = '******'

const ALGORITHM = 'aes-256-gcm'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const KEY_ID = /^[\w-]{1,64}$/

/**
 * AES-256-GCM (NIST SP 800-38D) with a random nonce. The owner of a secret is authenticated with it. The first key
 * seals, all of them open.
 */
export class SecretBox {
  #keys: readonly SecretKey[] = []

  /** Throws `TypeError` for keys that cannot be. */
  constructor(keys: readonly SecretKey[]) {
    this.take(keys)
  }

  /** Seals and opens with these keys from now on. Throws as the constructor does. */
  take(keys: readonly SecretKey[]): void {
    for (const { id, key } of keys) {
      if (!KEY_ID.test(id))
        throw new TypeError(
          `a secret key's id is ${quoted(id)}; it must be 1 to 64 characters of A-Z, a-z, 0-9, "_" and "-"`,
        )
      if (key.length !== KEY_BYTES)
        throw new TypeError(`the secret key ${quoted(id)} has ${key.length} bytes; it must have ${KEY_BYTES}`)
    }
    if (new Set(keys.map(({ id }) => id)).size < keys.length) throw new TypeError('two secret keys have the same id')
    this.#keys = keys
  }

  get keyIds(): readonly string[] {
    return this.#keys.map(({ id }) => id)
  }

  /**
   * The same, sealed with the current key; `undefined` if it already is, or was sealed with missing keys. Throws
   * `corrupt_data`.
   */
  resealed({ inputs, sealed }: SealedInputs, owner: SealedFor): SealedInputs | undefined {
    const [current, ...older] = this.keyIds
    const isOld = (text: string): boolean => older.includes(keyIdOf(text))
    if (current === undefined || !Object.values(sealed).some(isOld)) return undefined
    const anew = Object.entries(sealed).map(([name, text]): [string, string] => [
      name,
      isOld(text) ? this.#sealOne(this.#openOne(text, name, owner), name, owner) : text,
    ])
    return { inputs, sealed: Object.fromEntries(anew) }
  }

  /** Throws `not_supported` if there is a secret and no key. */
  seal(values: InputValues, secretNames: readonly string[], owner: SealedFor): SealedInputs {
    const inputs: Record<string, string | number | boolean> = { ...values }
    const sealed: Record<string, string> = {}
    for (const name of secretNames) {
      if (!Object.hasOwn(values, name)) continue
      sealed[name] = this.#sealOne(String(values[name]), name, owner)
      inputs[name] = REDACTED
    }
    return { inputs, sealed }
  }

  /**
   * The inputs with their secrets. Throws `not_supported` if the key is gone, `corrupt_data` if they were damaged or
   * moved.
   */
  open({ inputs, sealed }: SealedInputs, owner: SealedFor): JsonObject {
    return {
      ...inputs,
      ...Object.fromEntries(Object.entries(sealed).map(([name, text]) => [name, this.#openOne(text, name, owner)])),
    }
  }

  #sealOne(secret: string, name: string, owner: SealedFor): string {
    const [current] = this.#keys
    if (current === undefined) {
      throw new StowageError(
        'not_supported',
        `the input ${quoted(name)} is a secret, and this service has no key to keep secrets with; its operator sets one (secretKeys)`,
      )
    }
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(ALGORITHM, current.key, nonce).setAAD(boundTo(name, owner))
    const text = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()])
    return [
      current.id,
      nonce.toString('base64url'),
      text.toString('base64url'),
      cipher.getAuthTag().toString('base64url'),
    ].join('.')
  }

  #openOne(sealed: string, name: string, owner: SealedFor): string {
    const [keyId, ...parts] = sealed.split('.')
    const [nonce, text, tag] = parts.map((part) => Buffer.from(part, 'base64url'))
    const found = this.#keys.find(({ id }) => id === keyId)
    if (found === undefined)
      throw new StowageError(
        'not_supported',
        `the input ${quoted(name)} was sealed with the key ${quoted(keyId)}, which this service does not have`,
      )
    try {
      const decipher = createDecipheriv(ALGORITHM, found.key, nonce).setAAD(boundTo(name, owner)).setAuthTag(tag)
      return Buffer.concat([decipher.update(text), decipher.final()]).toString('utf8')
    } catch (cause) {
      throw new StowageError(
        'corrupt_data',
        `the secret input ${quoted(name)} cannot be opened: it was damaged, or sealed for something else`,
        { cause },
      )
    }
  }
}

function keyIdOf(sealed: string): string {
  return sealed.slice(0, sealed.indexOf('.'))
}

function boundTo(name: string, { projectId, automationId }: SealedFor): Buffer {
  return Buffer.from(JSON.stringify([projectId, automationId, name]), 'utf8')
}
