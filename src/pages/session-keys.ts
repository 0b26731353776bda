import type { CredentialStore } from '../credentials/credential-store.ts'
import { isValidAt, type KeyRing, readKeys } from '../credentials/key-ring.ts'

/** The keys that seal the cookies of people who are signed in. */
export function sessionKeyRing(credentials: CredentialStore): KeyRing {
  return {
    credentials,
    name: 'session-key',
    ifDamaged: 'Remove it to get a new one: people have to sign in again then',
  }
}

/**
 * The stored keys that seal the cookies of people who are signed in: `session-key` and those that `stowage key rotate`
 * added, as long as they are valid. The first one is made on first use. With them, people stay signed in over a restart,
 * and on every server that shares the store. Throws `corrupt_data`.
 */
export async function storedSessionKeys(credentials: CredentialStore): Promise<readonly Uint8Array[]> {
  return (await readKeys(sessionKeyRing(credentials))).filter((key) => isValidAt(key, Date.now())).map(({ key }) => key)
}
