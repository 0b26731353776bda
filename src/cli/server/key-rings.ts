import { tokenKeyRing } from '../../access/token-keys.ts'
import { secretKeyRing } from '../../automation-server/secret-keys.ts'
import type { KeyRing } from '../../data-folder/key-ring.ts'
import { sessionKeyRing } from '../../pages/session-keys.ts'

/** The purposes of the keys of a data folder, by the names that the command uses. */
export const KEY_PURPOSES = ['tokens', 'secrets', 'sessions'] as const
export type KeyPurpose = (typeof KEY_PURPOSES)[number]

export function keyRingOf(purpose: KeyPurpose, dataFolder: string): KeyRing {
  const rings = { tokens: tokenKeyRing, secrets: secretKeyRing, sessions: sessionKeyRing }
  return rings[purpose](dataFolder)
}
