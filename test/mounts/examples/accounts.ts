import { timingSafeEqual } from 'node:crypto'
import type { Principal } from 'stowage'

/** Stands for the sign-in that a host has already: whoever brings this password may write the project `demo`. */
const PASSWORD = Buffer.from(`Bearer ${process.env.PASSWORD ?? 'open sesame'}`)

export function account(authorization: string = ''): Principal | undefined {
  const brought = Buffer.from(authorization)
  return brought.length === PASSWORD.length && timingSafeEqual(brought, PASSWORD)
    ? { subject: 'ada', projects: { demo: 'write' } }
    : undefined
}
