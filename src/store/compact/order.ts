import { Bitmap } from '../bytes/bitmap.ts'
import type { PackSelection } from '../closure/closure.ts'
import { BLOCK_BYTES } from '../../blocks/ready-blocks.ts'
import type { Pack } from '../records/pack-catalog.ts'
import type { MovingObjects } from './moved-batches.ts'

/** Objects that few downloads need are in larger blocks, since versions of one object compress better together. */
const OLDER_BLOCK_BYTES = 131_072

/** The parts of a merged pack, each in its order. */
export interface MergedOrder {
  readonly closures: readonly MovingObjects[]
  readonly rest: readonly MovingObjects[]
}

/** A pack to merge, and those of its objects that move. */
export interface MergeSource {
  readonly pack: Pack
  readonly moving: Bitmap
}

/**
 * The order of a merged pack: the objects of the first closure, those of the second that the first does not have, and so
 * on; then the rest. Each part keeps the order of the sources, in which neighbours of a graph are near each other. So
 * the download of the first closure is one long run of whole blocks. If there are no closures, all objects count as
 * needed.
 */
export function inMergedOrder(
  sources: readonly MergeSource[],
  closures: readonly (readonly PackSelection[])[],
): MergedOrder {
  const left = sources.map(({ pack, moving }) => ({ pack, wanted: moving }))
  const ordered: MovingObjects[] = []
  for (const packs of closures) {
    const wantedOf = new Map(packs.map(({ sequence, wanted }) => [sequence, wanted]))
    let beginsPart = true
    for (const entry of left) {
      const rest = entry.wanted.without(wantedOf.get(entry.pack.sequence) ?? Bitmap.empty(0))
      if (rest.count === entry.wanted.count) continue
      const wanted = entry.wanted.without(rest)
      ordered.push({ pack: entry.pack, wanted, beginsPart, blockBytes: BLOCK_BYTES })
      entry.wanted = rest
      beginsPart = false
    }
  }
  const rest = left
    .filter(({ wanted }) => wanted.count > 0)
    .map((entry, i) => ({ ...entry, beginsPart: i === 0, blockBytes: OLDER_BLOCK_BYTES }))
  if (closures.length > 0) return { closures: ordered, rest }
  return { closures: rest.map((entry) => ({ ...entry, blockBytes: BLOCK_BYTES })), rest: [] }
}
