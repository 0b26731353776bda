import { isValidAt, type KeyRing, readKeys } from '../data-folder/key-ring.ts'

/** The keys of a data folder that seal the cookies of people who are signed in. */
export function sessionKeyRing(dataFolder: string): KeyRing {
  return { dataFolder, name: 'session-key', ifDamaged: 'Remove it to get a new one: people have to sign in again then' }
}

/**
 * The keys of a data folder that seal the cookies of people who are signed in: `access/session-key` and those that
 * `stowage key rotate` added, as long as they are valid. The first one is made on first use. Only the owner can read
 * them. With them, people stay signed in over a restart. Throws `corrupt_data`.
 */
export async function sessionKeysFromFolder(dataFolder: string): Promise<readonly Uint8Array[]> {
  return (await readKeys(sessionKeyRing(dataFolder))).filter((key) => isValidAt(key, Date.now())).map(({ key }) => key)
}
