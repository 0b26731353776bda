import type { CredentialStore } from '../credentials/credential-store.ts'
import { type HeldKey, heldKeys, type KeyRing, readKeys, removeEndedKeys } from '../credentials/key-ring.ts'
import { StowageError } from '../errors.ts'
import type { SecretKeySource } from './domain/secrets.ts'

/** The keys that seal secrets among inputs. */
export function secretKeyRing(credentials: CredentialStore): KeyRing {
  return {
    credentials,
    name: 'secrets-key',
    ifDamaged: 'Restore it: secrets that were sealed with it cannot be opened otherwise',
  }
}

/**
 * The stored keys that seal secrets among inputs: `secrets-key` and those that `stowage key rotate` added. The first one
 * is made on first use. An old key is removed when it has ended and nothing is sealed with it any more. Without these
 * keys the secrets are lost: they belong into a backup, and not into the same one as the data. Reading throws
 * `corrupt_data`.
 */
export function storedSecretKeys(credentials: CredentialStore): SecretKeySource {
  const ring = secretKeyRing(credentials)
  let wasRead = false
  const keys = async (): Promise<readonly HeldKey[]> => {
    const held = await (wasRead ? heldKeys(ring) : readKeys(ring))
    // A new key in place of one that somebody removed would hide that all secrets are lost.
    if (held.length === 0)
      throw new StowageError('corrupt_data', `${credentials.describe('keys', ring.name)} is gone. ${ring.ifDamaged}`)
    wasRead = true
    return held
  }
  return {
    read: async () => (await keys()).map(({ id, key }) => ({ id, key })),
    release: (keyIds) => removeEndedKeys(ring, ({ id }) => keyIds.includes(id)),
  }
}
