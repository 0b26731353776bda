import type { Principal } from './access.ts'

/** What bounds for each principal count by: the account, or the token where no account is named. */
export function principalKey({ subject, tokenId }: Principal): string {
  return subject !== '' ? `subject ${subject}` : `token ${tokenId ?? ''}`
}
