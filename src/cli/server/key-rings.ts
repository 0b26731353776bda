import { tokenKeyRing } from '../../access/token-keys.ts'
import { secretKeyRing } from '../../automation-server/secret-keys.ts'
import type { CredentialStore } from '../../credentials/credential-store.ts'
import type { KeyRing } from '../../credentials/key-ring.ts'
import { sessionKeyRing } from '../../pages/session-keys.ts'

/** The purposes of the keys of a storage, by the names that the command uses. */
export const KEY_PURPOSES = ['tokens', 'secrets', 'sessions'] as const
export type KeyPurpose = (typeof KEY_PURPOSES)[number]

export function keyRingOf(purpose: KeyPurpose, credentials: CredentialStore): KeyRing {
  const rings = { tokens: tokenKeyRing, secrets: secretKeyRing, sessions: sessionKeyRing }
  return rings[purpose](credentials)
}
