import { type Access, EVERY_PROJECT, type Principal } from './access.ts'

const ANYBODY: Principal = Object.freeze({ subject: 'anybody', projects: new Map([[EVERY_PROJECT, 'write' as const]]) })

/** Everybody may read and write everything: the visible way to opt out, for servers that only trusted people can reach. */
export function openAccess(): Access<unknown> {
  return { authenticate: () => ANYBODY, authorize: () => true }
}
