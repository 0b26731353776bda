import { Refreshed } from '../async/refreshed.ts'
import type { Clock } from '../environment.ts'
import { type FolderKey, heldKeys, isValidAt, type KeyRing, readKeys } from '../data-folder/key-ring.ts'
import { StowageError } from '../errors.ts'

/** The keys of a data folder that sign tokens. */
export function tokenKeyRing(dataFolder: string): KeyRing {
  return {
    dataFolder,
    name: 'key',
    ifDamaged: 'Restore it, or remove it to get a new one: the tokens that it signed do not hold then',
  }
}

/** The keys that verify tokens now, as they are in the folder, read again when they are older than `freshMs`. */
export async function currentTokenKeys(
  dataFolder: string,
  { freshMs, clock }: { readonly freshMs: number; readonly clock: Clock },
): Promise<() => Promise<readonly FolderKey[]>> {
  const ring = tokenKeyRing(dataFolder)
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
