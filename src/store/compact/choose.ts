import { MERGE_SOURCES_MAX } from '../records/pack-record.ts'

/** The largest merged pack: a walk holds the tables of several of them. */
export const MERGED_OBJECTS_MAX = 32_768
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
  /** Memory that a merge takes for its live objects, about. */
  readonly memoryBytes: number
}

/** How packs are chosen. */
export interface ChooseOptions {
  /** Everything that fits into one pack. */
  readonly all?: boolean
  /** The memory of one merge. Default: unlimited. */
  readonly memoryBytesMax?: number
}

/**
 * The packs to merge next, in the order of their numbers; none if the number of packs is low enough. As git's geometric
 * repacking does it: sizes shall form a geometric progression, and the fewest small packs that restore it are merged.
 * So each object is rewritten a logarithmic number of times. Packs that are mostly dead are rewritten as well. With
 * `all`, everything that fits into one pack is. A merge takes no more packs than its memory allows.
 */
export function choosePacks(
  packs: readonly PackSize[],
  { all = false, memoryBytesMax = Infinity }: ChooseOptions = {},
): number[] {
  const dead = packs.filter(isMostlyDead).sort(bySize)
  const first = all ? together(inOrder(packs), memoryBytesMax) : smallest(packs, memoryBytesMax)
  const chosen = fitting([...first, ...dead.filter((pack) => !first.includes(pack))], memoryBytesMax)
  // A pack that is too large to be merged with others is rewritten alone.
  return inOrder(chosen.length === 0 ? dead.slice(0, 1) : chosen).map(({ sequence }) => sequence)
}

function smallest(packs: readonly PackSize[], memoryBytesMax: number): PackSize[] {
  const candidates = packs.filter((pack) => !isFull(pack, memoryBytesMax)).sort(bySize)
  let end = candidates.length - 1
  while (end > 0 && candidates[end].liveBytes >= GEOMETRIC_FACTOR * candidates[end - 1].liveBytes) end--
  if (end <= 0) return []
  let sum = 0
  for (let i = 0; i <= end; i++) sum += candidates[i].liveBytes
  while (end + 1 < candidates.length && candidates[end + 1].liveBytes < GEOMETRIC_FACTOR * sum)
    sum += candidates[++end].liveBytes
  // If they do not all fit into one pack, neighbours come together: those refer to each other.
  return fitting(inOrder(candidates.slice(0, end + 1)), memoryBytesMax)
}

/** Two packs that are not full always fit into one. */
function isFull({ liveObjects, liveBytes, memoryBytes }: PackSize, memoryBytesMax: number): boolean {
  const isLarge = liveObjects > MERGED_OBJECTS_MAX / 2 || liveBytes > MERGED_BYTES_MAX / 2
  return isLarge || memoryBytes > memoryBytesMax / 2
}

function isMostlyDead({ objects, packBytes, liveBytes }: PackSize): boolean {
  return objects > 0 && liveBytes < LIVE_SHARE_MIN * packBytes
}

/** As many as fit into one merged pack; later ones that are too large are passed over. */
function fitting(packs: readonly PackSize[], memoryBytesMax: number): PackSize[] {
  const taken: PackSize[] = []
  const sum = { objects: 0, bytes: 0, memoryBytes: 0 }
  for (const pack of packs) {
    const isTooMuch =
      sum.objects + pack.liveObjects > MERGED_OBJECTS_MAX ||
      sum.bytes + pack.liveBytes > MERGED_BYTES_MAX ||
      sum.memoryBytes + pack.memoryBytes > memoryBytesMax
    if (isTooMuch || taken.length === SOURCES_MAX) continue
    taken.push(pack)
    sum.objects += pack.liveObjects
    sum.bytes += pack.liveBytes
    sum.memoryBytes += pack.memoryBytes
  }
  return taken
}

/** As many as fit, from the first pack on with which that is of use. */
function together(packs: readonly PackSize[], memoryBytesMax: number): PackSize[] {
  for (let first = 0; first < packs.length; first++) {
    const taken = fitting(packs.slice(first), memoryBytesMax)
    if (taken.length > 1 || (taken.length === 1 && taken[0].liveObjects < taken[0].objects)) return taken
  }
  return []
}

function bySize(a: PackSize, b: PackSize): number {
  return a.liveBytes - b.liveBytes || a.sequence - b.sequence
}

function inOrder(packs: readonly PackSize[]): PackSize[] {
  return [...packs].sort((a, b) => a.sequence - b.sequence)
}
