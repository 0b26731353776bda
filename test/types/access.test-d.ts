import { expectAssignable, expectError, expectNotAssignable, expectType } from 'tsd'
import {
  type Access,
  claimAuthorize,
  jwtAccess,
  type JwtAccessOptions,
  openAccess,
  type Principal,
  type AccessRight,
} from 'stowage'

expectType<AccessRight>('read' as 'read' | 'write')
expectAssignable<Access<unknown>>(openAccess())

declare const keys: Uint8Array
const options = { keys, issuer: 'https://issuer.example', audience: 'stowage', algorithms: ['HS256'] }
expectAssignable<Access<unknown>>(jwtAccess(options))
expectAssignable<JwtAccessOptions>({
  ...options,
  keys: new URL('https://issuer.example/keys'),
  isRevoked: async (jti: string) => jti === 'x',
})

// Issuer, audience and algorithms are pinned, always.
expectError(jwtAccess({ keys, audience: 'a', algorithms: ['HS256'] }))
expectError(jwtAccess({ keys, issuer: 'i', algorithms: ['HS256'] }))
expectError(jwtAccess({ keys, issuer: 'i', audience: 'a' }))
expectNotAssignable<JwtAccessOptions>({ ...options, keys: 'a secret as text' })

// Either half may be asynchronous; the other half can be Stowage's.
declare const principal: Principal
expectAssignable<Access<unknown>>({ authenticate: () => undefined, authorize: claimAuthorize })
expectAssignable<Access<unknown>>({ authenticate: async () => principal, authorize: async () => false })
expectType<boolean>(claimAuthorize(principal, 'demo', 'write'))
expectError(claimAuthorize(principal, 'demo', 'admin'))
