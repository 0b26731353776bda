import { createHash, randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createExclusively, ensurePrivateFolder } from '../access/exclusive-file.ts'
import { seal, unseal } from '../access/sealed.ts'
import { StowageError } from '../errors.ts'
import type { SecretKey } from './domain/secrets.ts'

const KEY_BYTES = 32
const KEY_TEXT = /^[0-9a-f]{64}$/
const ID_HEX_DIGITS = 16

/**
 * The key of a data folder that seals secrets among inputs: `access/secrets-key`, beside the one that signs tokens, made on first use and readable by its
 * owner alone. Without this file the secrets are lost: it belongs into a backup, and not into the same one as the data. Throws `corrupt_data`.
 */
export async function secretKeyFromFolder(dataFolder: string): Promise<SecretKey> {
  const folder = join(dataFolder, 'access')
  const path = join(folder, 'secrets-key')
  await ensurePrivateFolder(folder)
  const key = parseKey(path, await readIfThere(path) ?? await made(path))
  return { id: createHash('sha256').update(key).digest('hex').slice(0, ID_HEX_DIGITS), key }
}

async function made(path: string): Promise<string> {
  await createExclusively(path, seal(randomBytes(KEY_BYTES).toString('hex')))
  return readFile(path, 'utf8')
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function parseKey(path: string, text: string): Uint8Array {
  const hex = unseal(text) ?? ''
  if (KEY_TEXT.test(hex)) return new Uint8Array(Buffer.from(hex, 'hex'))
  throw new StowageError('corrupt_data', `${path} is not a key; it must be a line of 64 hex digits and one of their CRC-32. Restore it: secrets that were sealed with it cannot be opened otherwise`)
}
