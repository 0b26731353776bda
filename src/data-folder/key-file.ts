import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { StowageError } from '../errors.ts'
import { createExclusively, ensurePrivateFolder } from './exclusive-file.ts'
import { seal, unseal } from './sealed.ts'

const KEY_BYTES = 32
const KEY_TEXT = /^[0-9a-f]{64}$/

export interface KeyFile {
  readonly dataFolder: string
  /** Of the file, such as `secrets-key`. */
  readonly name: string
  /** What to do about a damaged one, as a sentence without its full stop. */
  readonly ifDamaged: string
}

/** The 32 bytes in `access/<name>` of a data folder, beside the key that signs tokens: made on first use, readable by the owner alone. Throws `corrupt_data`. */
export async function keyFromFolder({ dataFolder, name, ifDamaged }: KeyFile): Promise<Uint8Array> {
  const folder = join(dataFolder, 'access')
  const path = join(folder, name)
  await ensurePrivateFolder(folder)
  const hex = unseal((await readIfThere(path)) ?? (await made(path))) ?? ''
  if (KEY_TEXT.test(hex)) return new Uint8Array(Buffer.from(hex, 'hex'))
  throw new StowageError(
    'corrupt_data',
    `${path} is not a key; it must be a line of 64 hex digits and one of their CRC-32. ${ifDamaged}`,
  )
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
