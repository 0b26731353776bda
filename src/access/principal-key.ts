import type { Principal } from './access.ts'

/** The unit of limits per principal: the account, or the token if it names no account. */
export function principalKey({ subject, tokenId }: Principal): string {
  return subject !== '' ? `subject ${subject}` : `token ${tokenId ?? ''}`
}
