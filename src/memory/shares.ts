import type { Party } from './memory-lease.ts'

/**
 * The memory that each party holds. A party is a project of a principal. Principals are compared first: nobody gains by
 * spreading requests over many projects. The projects of one principal are compared with each other, since a host may
 * use one name for all of its users.
 */
export class FairShares {
  readonly #byPrincipal = new Map<string, number>()
  readonly #byParty = new Map<string, number>()

  keyOf({ principal, projectId }: Party): string {
    return `${projectId}\0${principal}`
  }

  add(party: Party, bytes: number): void {
    addTo(this.#byPrincipal, party.principal, bytes)
    addTo(this.#byParty, this.keyOf(party), bytes)
  }

  isSame(a: Party, b: Party): boolean {
    return a.principal === b.principal && a.projectId === b.projectId
  }

  /** Negative when `a` holds less than `b`. */
  compare(a: Party, b: Party): number {
    if (a.principal !== b.principal) return this.#ofPrincipal(a) - this.#ofPrincipal(b)
    return this.#ofParty(a) - this.#ofParty(b)
  }

  /** Whether `a` holds more than `b` would with so many more bytes. */
  isLargerBy(a: Party, b: Party, bytes: number): boolean {
    if (a.principal !== b.principal) return this.#ofPrincipal(a) > this.#ofPrincipal(b) + bytes
    return a.projectId !== b.projectId && this.#ofParty(a) > this.#ofParty(b) + bytes
  }

  #ofPrincipal({ principal }: Party): number {
    return this.#byPrincipal.get(principal) ?? 0
  }

  #ofParty(party: Party): number {
    return this.#byParty.get(this.keyOf(party)) ?? 0
  }
}

function addTo(held: Map<string, number>, key: string, bytes: number): void {
  const sum = (held.get(key) ?? 0) + bytes
  if (sum === 0) held.delete(key)
  else held.set(key, sum)
}
