import { CompactEncrypt } from 'jose'
import type { AutomationRecord } from '../../automation-server/domain/automations.ts'
import type { SecretBox } from '../../automation-server/domain/secrets.ts'
import { StowageError } from '../../errors.ts'
import { recipientId, type RecipientKey, recipientKey } from './recipient-key.ts'

/** Who may have secrets sealed for them: public keys as PEM, or `any` key that a caller names. */
export type SecretRecipients = readonly string[] | 'any'

/** An automation whose secrets were sealed anew, for somebody who is not this server. */
export type AutomationForRecipient = Omit<AutomationRecord, 'sealed'> & { readonly secrets?: string }

const CONTENT_ENCRYPTION = 'A256GCM'

/**
 * Opens the secrets of automations and seals them for a recipient, as a JWE in compact form (RFC 7516). Its content
 * names the automation, so that nobody can move secrets to another one. Writers of a project must not learn its
 * secrets, so the operator of the server names the keys.
 */
export class SecretExport {
  readonly #recipients: readonly RecipientKey[] | 'any'
  readonly #secrets: () => Promise<SecretBox>

  /** Throws `invalid_request` for a key that is none. */
  constructor(recipients: SecretRecipients, secrets: () => Promise<SecretBox>) {
    this.#recipients = recipients === 'any' ? recipients : recipients.map(recipientKey)
    this.#secrets = secrets
  }

  /** Throws `forbidden` for a key that the operator has not named; if all are allowed, `invalid_request` for a text that is no key. */
  recipient(text: string): RecipientKey {
    if (this.#recipients === 'any') return recipientKey(text)
    const id = recipientId(text)
    const named = this.#recipients.find((one) => one.id === id)
    if (named !== undefined) return named
    throw new StowageError(
      'forbidden',
      `this server does not seal secrets for the key ${id}; its operator names such keys (secretRecipients, stowage serve --secret-recipient)`,
    )
  }

  /** Throws `not_supported` if the server has lost its key, `corrupt_data` if the secrets were damaged. */
  async automation(record: AutomationRecord, projectId: string, key: RecipientKey): Promise<AutomationForRecipient> {
    const { sealed, ...automation } = record
    const names = Object.keys(sealed)
    if (names.length === 0) return automation
    const opened = (await this.#secrets()).open(record, { projectId, automationId: record.id })
    const content = { automationId: record.id, secrets: Object.fromEntries(names.map((name) => [name, opened[name]])) }
    const secrets = await new CompactEncrypt(Buffer.from(JSON.stringify(content)))
      .setProtectedHeader({ alg: key.algorithm, enc: CONTENT_ENCRYPTION, kid: key.id })
      .encrypt(key.publicKey)
    return { ...automation, secrets }
  }
}
