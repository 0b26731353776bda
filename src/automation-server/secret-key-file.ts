import { createHash } from 'node:crypto'
import { keyFromFolder } from '../data-folder/key-file.ts'
import type { SecretKey } from './domain/secrets.ts'

const ID_HEX_DIGITS = 16

/**
 * The key of a data folder that seals secrets among inputs: `access/secrets-key`, beside the one that signs tokens, made on first use and readable by its
 * owner alone. Without this file the secrets are lost: it belongs into a backup, and not into the same one as the data. Throws `corrupt_data`.
 */
export async function secretKeyFromFolder(dataFolder: string): Promise<SecretKey> {
  const key = await keyFromFolder({
    dataFolder,
    name: 'secrets-key',
    ifDamaged: 'Restore it: secrets that were sealed with it cannot be opened otherwise',
  })
  return { id: createHash('sha256').update(key).digest('hex').slice(0, ID_HEX_DIGITS), key }
}
