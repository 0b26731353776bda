import { type Access, ALL_PROJECTS, type Principal } from './access.ts'

const ANYBODY: Principal = Object.freeze({ subject: 'anybody', projects: new Map([[ALL_PROJECTS, 'write' as const]]) })

/**
 * Everybody may read and write everything: the visible way to opt out, for servers that only trusted people can reach.
 */
export function openAccess(): Access<unknown> {
  return { authenticate: () => ANYBODY, authorize: () => true }
}
