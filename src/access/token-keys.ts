import { Refreshed } from '../async/refreshed.ts'
import type { Clock } from '../environment.ts'
import type { CredentialStore } from '../credentials/credential-store.ts'
import { type HeldKey, heldKeys, isValidAt, type KeyRing, readKeys } from '../credentials/key-ring.ts'
import { StowageError } from '../errors.ts'

/** The keys that sign tokens. */
export function tokenKeyRing(credentials: CredentialStore): KeyRing {
  return {
    credentials,
    name: 'key',
    ifDamaged: 'Restore it, or remove it to get a new one: the tokens that it signed do not hold then',
  }
}

/** The keys that verify tokens now, as they are in the store, read again when they are older than `freshMs`. */
export async function currentTokenKeys(
  credentials: CredentialStore,
  { freshMs, clock }: { readonly freshMs: number; readonly clock: Clock },
): Promise<() => Promise<readonly HeldKey[]>> {
  const ring = tokenKeyRing(credentials)
  await readKeys(ring)
  const held = new Refreshed(() => heldKeys(ring), freshMs)
  return async () => {
    try {
      return (await held.get()).filter((key) => isValidAt(key, clock.now()))
    } catch (cause) {
      throw new StowageError('access_unavailable', 'the keys that verify tokens cannot be read now; try again later', {
        cause,
        headers: { 'Retry-After': '1' },
      })
    }
  }
}
