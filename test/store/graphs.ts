import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { type Made, lineOf, textOf } from './support.ts'

/** What a store must hold: the first text of each id, in each project. */
export class Oracle {
  readonly objects: Map<string, Made> = new Map()

  /** Takes an upload in; says what its summary must say. */
  add(objects: readonly Made[]): { objects: number; inserted: number; differing: number } {
    const before = this.objects.size
    let differing = 0
    for (const object of objects) {
      const held = this.objects.get(object.id)
      if (held === undefined) this.objects.set(object.id, object)
      else if (textOf(held) !== textOf(object)) differing++
    }
    return { objects: new Set(objects.map(({ id }) => id)).size, inserted: this.objects.size - before, differing }
  }

  lines(ids: Iterable<string>): string[] {
    return [...ids]
      .flatMap((id) => {
        const object = this.objects.get(id)
        return object === undefined ? [] : [lineOf(object)]
      })
      .sort()
  }

  closure(root: string): { ids: Set<string>; missing: string[] } {
    const ids = new Set<string>([root])
    const missing = new Set<string>()
    for (const id of ids) {
      const object = this.objects.get(id)
      assert.ok(object !== undefined)
      for (const child of referencesOf(object)) (this.objects.has(child) ? ids : missing).add(child)
      for (const claim of claimsOf(object)) if (this.objects.has(claim)) ids.add(claim)
    }
    return { ids, missing: [...missing].sort() }
  }
}

/** The ids that an object refers to, at any depth. */
export function referencesOf(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  const own = 'referencedId' in value && typeof value.referencedId === 'string' ? [value.referencedId] : []
  return [...own, ...Object.values(value).flatMap(referencesOf)]
}

function claimsOf(object: Made): string[] {
  return Object.keys((object['__closure'] as object | undefined) ?? {})
}

export function referTo(ids: readonly string[]): { referencedId: string }[] {
  return ids.map((referencedId) => ({ referencedId }))
}

/** Numbers from 0 up to, not including, `below`, always the same for a seed (mulberry32). */
export type Random = (below: number) => number

export function seeded(seed: number): Random {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296) * below)
  }
}

export interface GraphOptions {
  readonly objects: number
  /** References also lead back up. */
  readonly isCyclic?: boolean
  /** Of 100 references, how many lead to nothing. */
  readonly missingPercent?: number
  /** Of 100 objects, how many carry claims. */
  readonly claimPercent?: number
  /** Bytes of padding, at most. */
  readonly paddingBytes?: number
  readonly prefix?: string
  /** Ids are 32 hex digits, as most clients make them. */
  readonly isHex?: boolean
}

/** Objects in which everything can be reached from the first in a graph without missing parts. */
export function randomGraph(random: Random, options: GraphOptions): Made[] {
  const {
    objects,
    isCyclic = false,
    missingPercent = 0,
    claimPercent = 0,
    paddingBytes = 200,
    prefix = 'n',
    isHex = false,
  } = options
  const hexOf = (index: number): string => createHash('md5').update(`${prefix}${index}`).digest('hex')
  const idOf = (index: number): string => (isHex ? hexOf(index) : `${prefix}${index.toString(36)}`)
  const children: string[][] = Array.from({ length: objects }, () => [])
  for (let child = 1; child < objects; child++) children[Math.max(0, child - 1 - random(20))].push(idOf(child))
  for (let index = 0; index < objects; index++) {
    for (let extra = random(3); extra > 0; extra--) {
      if (random(100) < missingPercent) children[index].push(`${prefix}missing${random(objects)}`)
      else if (isCyclic) children[index].push(idOf(random(objects)))
      else if (index + 1 < objects) children[index].push(idOf(index + 1 + random(objects - index - 1)))
    }
  }
  return children.map((ids, index) => {
    const claims = Array.from({ length: random(100) < claimPercent ? 1 + random(4) : 0 }, () =>
      idOf(random(objects * 2)),
    )
    return {
      id: idOf(index),
      ...(claims.length > 0 ? { __closure: Object.fromEntries(claims.map((id) => [id, 1])) } : {}),
      name: `Node ${index} ä`,
      children: referTo(ids),
      padding: paddingOf(random, random(paddingBytes)),
    }
  })
}

function paddingOf(random: Random, length: number): string {
  return Array.from({ length: length >> 1 }, () => random(256).toString(16).padStart(2, '0')).join('')
}

/** The items in another order. */
export function shuffled<T>(random: Random, items: readonly T[]): T[] {
  const mixed = [...items]
  for (let at = mixed.length - 1; at > 0; at--) {
    const other = random(at + 1)
    ;[mixed[at], mixed[other]] = [mixed[other], mixed[at]]
  }
  return mixed
}

/** The items in runs of random lengths. */
export function splitRandomly<T>(random: Random, items: readonly T[], parts: number): T[][] {
  const runs: T[][] = []
  for (let at = 0; at < items.length;) {
    const length = 1 + random(Math.max(1, Math.ceil((items.length * 2) / parts)))
    runs.push(items.slice(at, at + length))
    at += length
  }
  return runs
}
