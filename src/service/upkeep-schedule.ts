import { BackgroundLoop } from '../async/background-loop.ts'
import type { Environment, Timer } from '../environment.ts'
import { StowageError } from '../errors.ts'
import type { CollectionSettings } from './collection-settings.ts'
import type { ProjectUpkeep } from './project-upkeep.ts'
import { isShare, isWithoutObjects } from './upkeep.ts'

/** How often all projects are compacted, and how much of a processor that may take. */
export interface CompactionSchedule {
  /** The pause between two looks at everything. 24 days at most. The first one comes 10 minutes after the opening at the latest. */
  readonly everyMs: number
  /** The share of one processor, above 0 and at most 1. A tenth by default. */
  readonly processorShare?: number | undefined
}

export interface ScheduleParts {
  readonly collection: CollectionSettings | undefined
  readonly compaction: CompactionSchedule | undefined
  readonly environment: Environment
  readonly projects: () => AsyncIterable<readonly string[]>
  readonly upkeepOf: (projectId: string) => ProjectUpkeep
  /** Receives the failure of one project; the others go on. */
  readonly onError: (error: unknown) => void
}

const FIRST_AFTER_MS = 600_000
const INTERVAL_MS_MAX = 2 ** 31 - 1
const PROCESSOR_SHARE = 0.1

/** Collects and compacts all projects again and again, one project at a time. */
export class UpkeepSchedule {
  readonly #parts: ScheduleParts
  readonly #closing = new AbortController()
  readonly #loops: readonly PeriodicWork[]

  /** Throws `RangeError` for a schedule that cannot be. */
  constructor(parts: ScheduleParts) {
    this.#parts = parts
    const { collection, compaction, environment } = parts
    const { signal } = this.#closing
    const works: (readonly [name: string, everyMs: number, work: (upkeep: ProjectUpkeep) => Promise<unknown>])[] = []
    if (collection?.everyMs !== undefined)
      works.push(['collection', collection.everyMs, (upkeep) => upkeep.collect({ signal })])
    if (compaction !== undefined) {
      const { everyMs, processorShare = PROCESSOR_SHARE } = compaction
      if (!isShare(processorShare))
        throw new RangeError(`compaction.processorShare is ${processorShare}; it must be above 0 and at most 1`)
      works.push(['compaction', everyMs, (upkeep) => upkeep.compact({ processorShare, signal })])
    }
    this.#loops = works.map(
      ([name, everyMs, work]) => new PeriodicWork(checkedInterval(name, everyMs), environment, () => this.#each(work)),
    )
  }

  start(): void {
    for (const loop of this.#loops) loop.start()
  }

  /** Stops what is under way, without loss. */
  async stop(): Promise<void> {
    this.#closing.abort(new StowageError('closing', 'the service is closing'))
    await Promise.all(this.#loops.map((loop) => loop.stop()))
  }

  async #each(work: (upkeep: ProjectUpkeep) => Promise<unknown>): Promise<void> {
    const { signal } = this.#closing
    const { projects, upkeepOf, onError } = this.#parts
    try {
      for await (const ids of projects()) {
        for (const id of ids) {
          if (signal.aborted) return
          await work(upkeepOf(id)).catch((error: unknown) => {
            if (!signal.aborted && !isWithoutObjects(error)) onError(error)
          })
        }
      }
    } catch (error) {
      if (!signal.aborted) onError(error)
    }
  }
}

/** Begins soon after the start even where the interval is long: a server that is restarted every day still works. */
class PeriodicWork {
  readonly #loop: BackgroundLoop
  readonly #environment: Environment
  readonly #firstAfterMs: number
  #first: Timer | undefined

  constructor(everyMs: number, environment: Environment, work: () => Promise<void>) {
    this.#environment = environment
    this.#firstAfterMs = Math.min(everyMs, FIRST_AFTER_MS)
    this.#loop = new BackgroundLoop(work, everyMs, environment)
  }

  start(): void {
    this.#first = this.#environment.setTimer(this.#firstAfterMs, () => this.#loop.soon()).unref()
  }

  async stop(): Promise<void> {
    this.#first?.cancel()
    await this.#loop.stop()
  }
}

function checkedInterval(name: string, everyMs: number): number {
  if (Number.isSafeInteger(everyMs) && everyMs >= 1 && everyMs <= INTERVAL_MS_MAX) return everyMs
  throw new RangeError(`${name}.everyMs is ${everyMs}; it must be an integer from 1 to ${INTERVAL_MS_MAX}`)
}
