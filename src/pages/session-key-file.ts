import { keyFromFolder } from '../data-folder/key-file.ts'

/**
 * The key of a data folder that seals the cookies of whoever is signed in: `access/session-key`, made on first use and readable by its owner alone. With
 * it people stay signed in over a restart. Throws `corrupt_data`.
 */
export function sessionKeyFromFolder(dataFolder: string): Promise<Uint8Array> {
  return keyFromFolder({
    dataFolder,
    name: 'session-key',
    ifDamaged: 'Remove it to get a new one: people have to sign in again then',
  })
}
