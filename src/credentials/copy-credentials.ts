import { StowageError } from '../errors.ts'
import { CREDENTIAL_GROUPS, type CredentialStore } from './credential-store.ts'

/** Whether a store has no keys, and has never issued a token. */
export async function hasNoCredentials(credentials: CredentialStore): Promise<boolean> {
  for (const group of CREDENTIAL_GROUPS) if ((await credentials.names(group)).length > 0) return false
  return true
}

/**
 * Copies keys, tokens and revocations under their own names, so that every token goes on to be valid. Repeatable.
 * Resolves to the number of tokens. Throws `conflict` if the target has another text of the same name.
 */
export async function copyCredentials(from: CredentialStore, to: CredentialStore): Promise<number> {
  await to.open()
  let tokens = 0
  for (const group of CREDENTIAL_GROUPS) {
    for (const [name, text] of await from.readAll(group)) {
      const isNew = await to.create(group, name, text)
      if (!isNew && (await to.read(group, name)) !== text)
        throw new StowageError('conflict', `${to.describe(group, name)} differs from ${from.describe(group, name)}`)
      if (group === 'tokens') tokens++
    }
  }
  return tokens
}
