import type { IdIndex } from './id-index.ts'
import { placeOf } from './id-index.ts'
import { idOf, mixed } from './synthetic-ids.ts'

const BATCH_IDS = 1_000
/** Single look-ups are this many times fewer: each waits for the one before. */
const SINGLE_SHARE = 5

export interface LookupRate {
  readonly perSecond: number
  /** Of the process, all threads together; not of a database server. */
  readonly cpuMicroseconds: number
}

export interface WayFigures {
  readonly objects: number
  readonly bytesPerObject: number
  readonly builtPerSecond: number
  readonly batchPresent: LookupRate
  readonly batchAbsent: LookupRate
  readonly singlePresent: LookupRate
  readonly singleAbsent: LookupRate
  readonly residentMB: number
  readonly residentPeakMB: number
}

/** Builds the index and looks objects up. Every answer is compared with the place that the object has. */
export async function measureWay(index: IdIndex, objects: number, lookups: number): Promise<WayFigures> {
  const began = performance.now()
  await index.build(objects)
  const builtPerSecond = objects / ((performance.now() - began) / 1_000)
  const singles = Math.ceil(lookups / SINGLE_SHARE)
  const work = { index, objects }
  await rateOf(work, { lookups: BATCH_IDS, batch: BATCH_IDS, arePresent: true })
  const figures = {
    objects,
    builtPerSecond,
    batchPresent: await rateOf(work, { lookups, batch: BATCH_IDS, arePresent: true }),
    batchAbsent: await rateOf(work, { lookups, batch: BATCH_IDS, arePresent: false }),
    singlePresent: await rateOf(work, { lookups: singles, batch: 1, arePresent: true }),
    singleAbsent: await rateOf(work, { lookups: singles, batch: 1, arePresent: false }),
    residentMB: process.memoryUsage.rss() / 1_048_576,
    residentPeakMB: process.resourceUsage().maxRSS / 1_024,
  }
  return { ...figures, bytesPerObject: (await index.sizeBytes()) / objects }
}

interface Lookups {
  readonly lookups: number
  readonly batch: number
  readonly arePresent: boolean
}

async function rateOf(
  { index, objects }: { readonly index: IdIndex; readonly objects: number },
  { lookups, batch, arePresent }: Lookups,
): Promise<LookupRate> {
  const asked = Array.from({ length: lookups }, (_, i) => (arePresent ? mixed(i + batch) % objects : objects + i))
  const ids = asked.map(idOf)
  const [began, cpu] = [performance.now(), process.cpuUsage()]
  for (let from = 0; from < lookups; from += batch) {
    const found = await index.find(ids.slice(from, from + batch))
    for (const [i, place] of found.entries()) {
      const wanted = arePresent ? placeOf(asked[from + i]) : undefined
      if (place?.sequence !== wanted?.sequence || place?.ordinal !== wanted?.ordinal)
        throw new Error(`object ${asked[from + i]} was looked up, and the index found another place than its own`)
    }
  }
  const seconds = (performance.now() - began) / 1_000
  const { user, system } = process.cpuUsage(cpu)
  return { perSecond: lookups / seconds, cpuMicroseconds: (user + system) / lookups }
}
