import { MERGE_SOURCES_MAX } from '../records/pack-record.ts'

/** The largest merged pack: two bitmaps of its objects must fit into its record, and many packs into one merge. */
export const MERGED_OBJECTS_MAX = 200_000
const MERGED_BYTES_MAX = 2 ** 30
export const SOURCES_MAX: number = MERGE_SOURCES_MAX
/** Each pack is at least this many times as large as the next smaller one, so their number is logarithmic. */
const GEOMETRIC_FACTOR = 2
/** A pack is worth rewriting by itself if less of it than this is live. */
const LIVE_SHARE_MIN = 0.5

/** How much of a pack would move to a merged one. */
export interface PackSize {
  readonly sequence: number
  /** All objects of the pack, and those that it still owns. */
  readonly objects: number
  readonly liveObjects: number
  readonly packBytes: number
  /** The share of its bytes that its live objects have, about. */
  readonly liveBytes: number
}

/**
 * The packs to merge next, in the order of their numbers; none if the number of packs is low enough. As git's geometric
 * repacking does it: sizes shall form a geometric progression, and the fewest small packs that restore it are merged.
 * So each object is rewritten a logarithmic number of times. Packs that are mostly dead are rewritten as well. With
 * `all`, everything that fits into one pack is.
 */
export function choosePacks(packs: readonly PackSize[], { all = false }: { readonly all?: boolean } = {}): number[] {
  const dead = packs.filter(isMostlyDead).sort(bySize)
  const first = all ? withoutUseless(fitting(inOrder(packs))) : smallest(packs)
  const chosen = fitting([...first, ...dead.filter((pack) => !first.includes(pack))])
  // A pack that is too large to be merged with others is rewritten alone.
  return inOrder(chosen.length === 0 ? dead.slice(0, 1) : chosen).map(({ sequence }) => sequence)
}

function smallest(packs: readonly PackSize[]): PackSize[] {
  const candidates = packs.filter((pack) => !isFull(pack)).sort(bySize)
  let end = candidates.length - 1
  while (end > 0 && candidates[end].liveBytes >= GEOMETRIC_FACTOR * candidates[end - 1].liveBytes) end--
  if (end <= 0) return []
  let sum = 0
  for (let i = 0; i <= end; i++) sum += candidates[i].liveBytes
  while (end + 1 < candidates.length && candidates[end + 1].liveBytes < GEOMETRIC_FACTOR * sum)
    sum += candidates[++end].liveBytes
  return fitting(candidates.slice(0, end + 1))
}

/** Two packs that are not full always fit into one. */
function isFull({ liveObjects, liveBytes }: PackSize): boolean {
  return liveObjects > MERGED_OBJECTS_MAX / 2 || liveBytes > MERGED_BYTES_MAX / 2
}

function isMostlyDead({ objects, packBytes, liveBytes }: PackSize): boolean {
  return objects > 0 && liveBytes < LIVE_SHARE_MIN * packBytes
}

/** As many as fit into one merged pack; later ones that are too large are passed over. */
function fitting(packs: readonly PackSize[]): PackSize[] {
  const taken: PackSize[] = []
  let objects = 0
  let bytes = 0
  for (const pack of packs) {
    const isTooMuch = objects + pack.liveObjects > MERGED_OBJECTS_MAX || bytes + pack.liveBytes > MERGED_BYTES_MAX
    if (isTooMuch || taken.length === SOURCES_MAX) continue
    taken.push(pack)
    objects += pack.liveObjects
    bytes += pack.liveBytes
  }
  return taken
}

/** One pack alone is rewritten only if that frees something. */
function withoutUseless(packs: PackSize[]): PackSize[] {
  return packs.length === 1 && packs[0].liveObjects === packs[0].objects ? [] : packs
}

function bySize(a: PackSize, b: PackSize): number {
  return a.liveBytes - b.liveBytes || a.sequence - b.sequence
}

function inOrder(packs: readonly PackSize[]): PackSize[] {
  return [...packs].sort((a, b) => a.sequence - b.sequence)
}
