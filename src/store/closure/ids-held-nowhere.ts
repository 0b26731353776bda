import type { HashKey } from '../../environment.ts'
import { IdSet } from '../../object/id-set.ts'
import type { Closure } from './closure.ts'
import type { UnresolvedIds } from './unresolved-ids.ts'

/** Ids that a walk met and that are held nowhere: those that something refers to, and those that are only claimed. */
export class IdsHeldNowhere {
  readonly #missing: IdSet
  #absentClaims: IdSet

  constructor(key: HashKey) {
    this.#missing = new IdSet(undefined, undefined, key)
    this.#absentClaims = new IdSet(undefined, undefined, key)
  }

  get memoryBytes(): number {
    return this.#missing.memoryBytes + this.#absentClaims.memoryBytes
  }

  /** The memory that `trim` needs besides. */
  get trimBytes(): number {
    return Math.max(this.#missing.trimBytes, this.#absentClaims.trimBytes)
  }

  /** Adds id `index` of these. */
  add(unresolved: UnresolvedIds, index: number): void {
    const isReferred = unresolved.isReferred(index)
    ;(isReferred ? this.#missing : this.#absentClaims).addFrom(unresolved.ids, index)
  }

  /** Takes all of these ids at once, if that is possible: the usual case of very many. */
  takeAll({ ids, referred }: UnresolvedIds): boolean {
    if (referred > 0 || this.#absentClaims.size > 0) return false
    this.#absentClaims = ids
    return true
  }

  /** The memory for what is here and all of these ids, if nothing refers to them. */
  neededBytes({ ids }: UnresolvedIds): number {
    return IdSet.tablesBytes(this.#absentClaims.size + ids.size) + ids.idBytes + this.#absentClaims.idBytes
  }

  /** Makes that room. */
  reserve({ ids }: UnresolvedIds): void {
    this.#absentClaims.reserve(this.#absentClaims.size + ids.size, this.#absentClaims.idBytes + ids.idBytes)
  }

  /** What is here, without memory to spare. */
  trim(): Pick<Closure, 'missing' | 'absentClaims'> {
    return { missing: this.#missing.trim(), absentClaims: this.#absentClaims.trim() }
  }
}
