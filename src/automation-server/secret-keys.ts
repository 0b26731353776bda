import { type FolderKey, heldKeys, type KeyRing, readKeys, removeEndedKeys } from '../data-folder/key-ring.ts'
import { StowageError } from '../errors.ts'
import type { SecretKeySource } from './domain/secrets.ts'

/** The keys of a data folder that seal secrets among inputs. */
export function secretKeyRing(dataFolder: string): KeyRing {
  return {
    dataFolder,
    name: 'secrets-key',
    ifDamaged: 'Restore it: secrets that were sealed with it cannot be opened otherwise',
  }
}

/**
 * The keys of a data folder that seal secrets among inputs: `access/secrets-key` and those that `stowage key rotate`
 * added, beside the keys that sign tokens. The first one is made on first use. Only the owner can read them. An old key
 * is removed when it has ended and nothing is sealed with it any more. Without these files the secrets are lost: they
 * belong into a backup, and not into the same one as the data. Reading throws `corrupt_data`.
 */
export function secretKeysFromFolder(dataFolder: string): SecretKeySource {
  const ring = secretKeyRing(dataFolder)
  let wasRead = false
  const keys = async (): Promise<readonly FolderKey[]> => {
    const held = await (wasRead ? heldKeys(ring) : readKeys(ring))
    // A new key in place of one that somebody removed would hide that all secrets are lost.
    if (held.length === 0)
      throw new StowageError('corrupt_data', `${ring.name} of ${dataFolder} is gone. ${ring.ifDamaged}`)
    wasRead = true
    return held
  }
  return {
    read: async () => (await keys()).map(({ id, key }) => ({ id, key })),
    release: (keyIds) => removeEndedKeys(ring, ({ id }) => keyIds.includes(id)),
  }
}
