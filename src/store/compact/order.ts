import { Bitmap } from '../bytes/bitmap.ts'
import type { PackSelection } from '../closure/closure.ts'
import type { Pack } from '../records/pack-catalog.ts'
import type { MovingObjects } from './moved-batches.ts'

/** A pack to merge, and those of its objects that move. */
export interface MergeSource {
  readonly pack: Pack
  readonly moving: Bitmap
}

/**
 * The order of a merged pack: the objects of the first closure, those of the second that the first does not have, and so
 * on; then the rest. Each part keeps the order of the sources, in which neighbours of a graph are near each other. So
 * the download of the first closure is one long run of whole blocks.
 */
export function inMergedOrder(
  sources: readonly MergeSource[],
  closures: readonly (readonly PackSelection[])[],
): MovingObjects[] {
  const left = sources.map(({ pack, moving }) => ({ pack, wanted: moving }))
  const ordered: MovingObjects[] = []
  for (const packs of closures) {
    const wantedOf = new Map(packs.map(({ sequence, wanted }) => [sequence, wanted]))
    let beginsPart = true
    for (const entry of left) {
      const rest = entry.wanted.without(wantedOf.get(entry.pack.sequence) ?? Bitmap.empty(0))
      if (rest.count === entry.wanted.count) continue
      ordered.push({ pack: entry.pack, wanted: entry.wanted.without(rest), beginsPart })
      entry.wanted = rest
      beginsPart = false
    }
  }
  let beginsPart = true
  for (const { pack, wanted } of left) {
    if (wanted.count === 0) continue
    ordered.push({ pack, wanted, beginsPart })
    beginsPart = false
  }
  return ordered
}
