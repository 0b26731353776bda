import { createPrivateKey, type KeyObject } from 'node:crypto'
import { compactDecrypt, decodeProtectedHeader } from 'jose'
import { StowageError } from '../errors.ts'
import { quoted } from '../object/id.ts'
import { recipientKey } from './server/recipient-key.ts'

type Secrets = Readonly<Record<string, string>>

/** Opens secrets that were sealed for a key (`docs/archive-format.md`). */
export class SecretOpener {
  readonly #key: KeyObject
  readonly #id: string

  /** Of a private key as PEM. Throws `invalid_request`. */
  constructor(pem: string) {
    try {
      this.#key = createPrivateKey(pem)
    } catch (cause) {
      throw new StowageError('invalid_request', 'the key of the secrets is not a private key as PEM (RFC 7468)', {
        cause,
      })
    }
    this.#id = recipientKey(this.#key).id
  }

  /** Throws `invalid_request` for secrets sealed for another key, `corrupt_data` for damaged or moved ones. */
  async open(sealed: string, automationId: string): Promise<Secrets> {
    const what = `the secrets of the automation ${quoted(automationId)}`
    if (keyIdOf(sealed) !== this.#id)
      throw new StowageError(
        'invalid_request',
        `${what} are sealed for the key ${quoted(keyIdOf(sealed) ?? '')}, but the given key is ${this.#id}`,
      )
    try {
      const { plaintext } = await compactDecrypt(sealed, this.#key)
      const content = JSON.parse(Buffer.from(plaintext).toString('utf8')) as {
        readonly automationId: string
        readonly secrets: Secrets
      }
      if (content.automationId === automationId) return content.secrets
    } catch (cause) {
      throw new StowageError('corrupt_data', `${what} cannot be opened`, { cause })
    }
    throw new StowageError('corrupt_data', `${what} were sealed for another automation`)
  }
}

function keyIdOf(sealed: string): string | undefined {
  try {
    return decodeProtectedHeader(sealed).kid
  } catch {
    return undefined
  }
}
