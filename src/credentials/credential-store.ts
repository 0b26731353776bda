/** What kind of thing a credential is: keys of servers, tokens that were issued, tokens that were revoked. */
export type CredentialGroup = 'keys' | 'tokens' | 'revoked'

export const CREDENTIAL_GROUPS: readonly CredentialGroup[] = ['keys', 'tokens', 'revoked']

/**
 * The place of the small texts that decide who may use a storage: keys, tokens that were issued, and which of them were
 * revoked. Each is created once and never changes, so that any number of processes can work beside each other.
 */
export interface CredentialStore {
  /** Names the place in messages, without secrets: a folder, or the address of a database. */
  readonly place: string
  /** Names one text in messages. */
  describe(group: CredentialGroup, name: string): string
  /** Makes the place ready. A server calls it before it lets anybody in. */
  open(): Promise<void>
  /** In no promised order. */
  names(group: CredentialGroup): Promise<readonly string[]>
  /** `undefined` if there is none of that name. Throws `corrupt_data` for a text that this store cannot have written. */
  read(group: CredentialGroup, name: string): Promise<string | undefined>
  /** All texts of a group by their names, but for those that go meanwhile. Throws as `read` does. */
  readAll(group: CredentialGroup): Promise<ReadonlyMap<string, string>>
  /** Of several callers that create one name at a time, one gets `true`; the others find its text. Durable. */
  create(group: CredentialGroup, name: string, text: string): Promise<boolean>
  /** Absent names are fine. */
  remove(group: CredentialGroup, name: string): Promise<void>
  /** Throws `invalid_request` where a key that this process creates could not be read by the server. */
  checkOwner(): Promise<void>
}
