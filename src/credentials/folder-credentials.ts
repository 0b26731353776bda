import type { Dirent } from 'node:fs'
import { readdir, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createExclusively, ensurePrivateFolder, TEMPORARY_PREFIX } from '../data-folder/exclusive-file.ts'
import { StowageError } from '../errors.ts'
import { CREDENTIAL_GROUPS, type CredentialGroup, type CredentialStore } from './credential-store.ts'

/*
 * The half of a data folder that says who may use it:
 *
 *   access/key, key.2 ...  keys, one file for each (`key-ring.ts`)
 *   access/tokens/<jti>    tokens that were issued
 *   access/revoked/<jti>   tokens that were revoked
 */

const FOLDERS: Readonly<Record<CredentialGroup, string>> = {
  keys: 'access',
  tokens: 'access/tokens',
  revoked: 'access/revoked',
}

/** The credentials in a data folder: one file for each, which only its owner can read. */
export function folderCredentials(dataFolder: string): CredentialStore {
  return new FolderCredentials(dataFolder)
}

class FolderCredentials implements CredentialStore {
  readonly place: string
  #isOpen = false

  constructor(dataFolder: string) {
    this.place = dataFolder
  }

  describe(group: CredentialGroup, name: string): string {
    return join(this.#folderOf(group), name)
  }

  async open(): Promise<void> {
    for (const group of CREDENTIAL_GROUPS) await ensurePrivateFolder(this.#folderOf(group))
    this.#isOpen = true
  }

  /** A folder that goes away under a running server is an error: nobody must be let in because a list was lost. */
  async names(group: CredentialGroup): Promise<readonly string[]> {
    const entries = await readdir(this.#folderOf(group), { withFileTypes: true }).catch(
      this.#isOpen ? undefined : absent<Dirent[]>([]),
    )
    // The folders of the other groups lie among the keys.
    const files = entries.filter((entry) => !entry.isDirectory() && !entry.name.startsWith(TEMPORARY_PREFIX))
    return files.map(({ name }) => name)
  }

  read(group: CredentialGroup, name: string): Promise<string | undefined> {
    return readFile(this.describe(group, name), 'utf8').catch(absent(undefined))
  }

  async readAll(group: CredentialGroup): Promise<ReadonlyMap<string, string>> {
    const texts = new Map<string, string>()
    for (const name of await this.names(group)) {
      const text = await this.read(group, name)
      if (text !== undefined) texts.set(name, text)
    }
    return texts
  }

  async create(group: CredentialGroup, name: string, text: string): Promise<boolean> {
    await ensurePrivateFolder(this.#folderOf(group))
    return createExclusively(this.describe(group, name), text)
  }

  async remove(group: CredentialGroup, name: string): Promise<void> {
    await rm(this.describe(group, name), { force: true })
  }

  async checkOwner(): Promise<void> {
    const folder = this.#folderOf('keys')
    const found = await stat(folder).catch(absent(undefined))
    if (process.getuid === undefined || found === undefined || process.getuid() === found.uid) return
    throw new StowageError(
      'invalid_request',
      `the keys in ${folder} belong to the user with the id ${found.uid}; run the command as that user, such as by "sudo -u"`,
    )
  }

  #folderOf(group: CredentialGroup): string {
    return join(this.place, FOLDERS[group])
  }
}

/** The result for a missing file. */
function absent<T>(instead: T): (error: unknown) => T {
  return (error) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return instead
    throw error
  }
}
