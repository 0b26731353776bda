import { createHash } from 'node:crypto'
import type { IdSet } from '../../object/id-set.ts'
import type { Bitmap } from '../bytes/bitmap.ts'

/** The approximate memory for the objects of one entry besides its bitmap. */
const PACK_OBJECT_BYTES = 128

/** The objects of one pack that belong to a closure. */
export interface PackSelection {
  readonly sequence: number
  readonly packId: string
  readonly wanted: Bitmap
}

/** A root with everything below it that is held. */
export interface Closure {
  readonly root: { readonly sequence: number; readonly ordinal: number }
  /** In the order of the project's sequence; each object in the one pack that owns it. */
  readonly packs: readonly PackSelection[]
  /** Ids that something refers to and that are not held. */
  readonly missing: IdSet
  /**
   * Ids that a claim (`__closure`) names and that are not held. They are ignored, but when one arrives, the closure
   * grows.
   */
  readonly absentClaims: IdSet
  /** The ids of all packs before this number could be found when the walk began. */
  readonly sequence: number
  /** Names the contents: `contentDigest`. */
  readonly digest: string
}

export function countObjects(packs: readonly PackSelection[]): number {
  return packs.reduce((sum, { wanted }) => sum + wanted.count, 0)
}

/** Bytes of memory that the bitmaps hold. */
export function packsBytes(packs: readonly PackSelection[]): number {
  return packs.reduce((sum, { wanted }) => sum + wanted.bytes.length + PACK_OBJECT_BYTES, 0)
}

/** The same of a closure. */
export function closureBytes({ packs, missing, absentClaims }: Closure): number {
  return packsBytes(packs) + missing.memoryBytes + absentClaims.memoryBytes
}

/**
 * Names the set of objects by their places: the SHA-256 of the packs and, for each, the bitmap of its objects. After a
 * merge of packs the same objects have another name.
 */
export function placesDigest(packs: readonly PackSelection[]): string {
  const hash = createHash('sha256')
  for (const { packId, wanted } of packs) hash.update(packId, 'hex').update(wanted.bytes)
  return hash.digest('hex').slice(0, 32)
}

/**
 * Whether nothing is missing, and no part of the closure lies in a later pack than the root. If the root became visible
 * after all earlier packs too (`lastOrdinals`), a client that downloaded it certainly has all of it.
 */
export function isCompleteSinceRoot({ root, packs, missing }: Closure): boolean {
  const last = packs.at(-1)
  return missing.size === 0 && (last === undefined || last.sequence <= root.sequence)
}

/** The rest of a closure for a client that has other closures already. The root is always sent. */
export function withoutClosures(closure: Closure, had: readonly (readonly PackSelection[])[]): PackSelection[] {
  const { root } = closure
  const hadBySequence = had.map((packs) => new Map(packs.map(({ sequence, wanted }) => [sequence, wanted])))
  const left: PackSelection[] = []
  for (const { sequence, packId, wanted } of closure.packs) {
    let rest = wanted
    for (const bySequence of hadBySequence) {
      const same = bySequence.get(sequence)
      if (same !== undefined) rest = rest.without(same)
    }
    if (sequence === root.sequence && !rest.has(root.ordinal)) rest.add(root.ordinal)
    if (rest.count > 0) left.push({ sequence, packId, wanted: rest })
  }
  return left
}
