import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { MB } from '../../limits.ts'
import { MEMORY_BYTES_MAX } from '../../memory/service-memory.ts'

/**
 * How much the heap may grow, in percent, from one full collection to the next. Bodies and blocks of uploads lie outside
 * the heap and count with it, and the heap of a server at work is small: V8 would collect all of it for every 16 MB of
 * JSON that arrive. Uploads take no less processor time with more than this.
 */
const GROWING_PERCENT_MAX = 100
/** The least, in a process that holds as much as it should. Uploads then take far more processor time. */
const GROWING_PERCENT_MIN = 15
/** A change of less makes no difference. */
const GROWING_PERCENT_STEP = 5
/**
 * How much a process holds beside its memory budget when it begins to collect more often, and when it collects as often
 * as it may. Its program, its modules, its threads and the mapped tables of LevelDB take about 140 MB, and the budget is
 * seldom used up. The allocator of the system keeps some of what it once gave, and no collection returns that.
 */
const OTHER_BYTES_WIDE = 123_000_000
const OTHER_BYTES_NARROW = 163_000_000
/**
 * Both halves of the space of young objects. V8 doubles it under load, up to 32 MB, and halves it when there is little
 * to do. Nothing is faster with more than this.
 */
const YOUNG_BYTES_MAX = 16 * MB
/** V8's own. */
const YOUNG_GROWTH_FACTOR = 2
const LOOK_MS = 250

/**
 * Stops the growth of the space of young objects until `tuneHeap` is called. Loading a server's modules would make it
 * larger than `YOUNG_BYTES_MAX`, and V8 does not shrink it while a server has work.
 */
export function keepYoungSpace(): void {
  setFlagsFromString('--semi-space-growth-factor=1')
}

/**
 * Collects what the start of a server left. V8 would do it during the first request: the start brings the heap close to
 * its limit.
 */
export function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  setFlagsFromString('--no-expose-gc')
  collect()
}

/** Suits V8 to a server, whose live heap is small and whose garbage is buffers. */
export function tuneHeap(memoryBytesMax: number = MEMORY_BYTES_MAX): void {
  let flags = ''
  const look = (): void => {
    const youngBytes = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.space_size ?? 0
    const percent = growingPercent(process.memoryUsage.rss(), memoryBytesMax)
    const next = `--semi-space-growth-factor=${youngGrowthFactor(youngBytes)} --heap-growing-percent=${percent}`
    if (next === flags) return
    flags = next
    setFlagsFromString(flags)
  }
  look()
  setInterval(look, LOOK_MS).unref()
}

/**
 * Garbage that is collected late is not only in the way until then: the allocator of the system returns little of what
 * it once gave to buffers. So the more a process holds, the less its heap may grow.
 */
export function growingPercent(residentBytes: number, memoryBytesMax: number): number {
  const part = (residentBytes - memoryBytesMax - OTHER_BYTES_WIDE) / (OTHER_BYTES_NARROW - OTHER_BYTES_WIDE)
  const percent = GROWING_PERCENT_MAX - (GROWING_PERCENT_MAX - GROWING_PERCENT_MIN) * Math.min(1, Math.max(0, part))
  return Math.round(percent / GROWING_PERCENT_STEP) * GROWING_PERCENT_STEP
}

/** How many times as large V8 may make the space of young objects in one step. */
export function youngGrowthFactor(youngBytes: number): number {
  return youngBytes >= YOUNG_BYTES_MAX ? 1 : YOUNG_GROWTH_FACTOR
}
