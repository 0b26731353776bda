import type { SealedRecords } from '../credentials/sealed-records.ts'
import type { SignInCode, SignInCodeStore } from './server/sign-in-codes.ts'

const GROUP = 'sign-in'

/** Codes of sign-in links among the records of a storage, so that a link works on every server that shares it. */
export function storedSignInCodes(records: SealedRecords): SignInCodeStore {
  return {
    async put(digest, code, nowMs) {
      for (const [other, text] of await records.readAll(GROUP))
        if (parsed(text).expiresMs <= nowMs) await records.remove(GROUP, other)
      await records.create(GROUP, digest, JSON.stringify(code))
    },
    async take(digest) {
      const text = await records.take(GROUP, digest)
      return text === undefined ? undefined : parsed(text)
    },
  }
}

/** The seal holds, so it is what `put` wrote. */
function parsed(text: string): SignInCode {
  return JSON.parse(text) as SignInCode
}
