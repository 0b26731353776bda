import type { InFlightRequests } from '../async/in-flight-requests.ts'
import type { Environment } from '../environment.ts'
import { StowageError } from '../errors.ts'
import type { EventDispatcher } from '../events/event-dispatcher.ts'
import {
  CHOSEN_MAX,
  type ChosenReport,
  type CollectionReport,
  type GraphCollector,
  type ObjectAmount,
  type ReadRoots,
  type UnreferencedPage,
} from '../object/collection.ts'
import type { CompactionReport, GraphCompactor } from '../object/compaction.ts'
import { checkObjectId, quoted } from '../object/id.ts'
import type { GraphRoot } from '../object/roots.ts'
import type { CallOptions } from '../storage/backend.ts'
import type {
  CollectCallOptions,
  CompactCallOptions,
  ProjectUpkeep,
  UnreferencedCallOptions,
} from './project-upkeep.ts'
import {
  type CollectionPeriods,
  type CollectionSettings,
  isPeriod,
  PERIOD_RULE,
  periodsOf,
} from './collection-settings.ts'
import { rootsOf, type RootSources } from './roots.ts'

export interface UpkeepDeps extends RootSources {
  readonly collection: CollectionSettings | undefined
  readonly inFlightRequests: InFlightRequests
  readonly events: EventDispatcher
  readonly environment: Environment
}

const PAGE_OBJECTS = 100
const PAGE_OBJECTS_MAX = 1_000

/** Collection and compaction of any project of a service. */
export class StorageUpkeep {
  readonly #deps: UpkeepDeps
  readonly #periods: CollectionPeriods

  /** Throws `RangeError` for settings that cannot be. */
  constructor(deps: UpkeepDeps) {
    this.#deps = deps
    this.#periods = periodsOf(deps.collection)
  }

  of(projectId: string): ProjectUpkeep {
    return {
      collect: (options) => this.#collect(projectId, options),
      restoreCollected: (options) => this.#restore(projectId, options),
      unreferenced: (options) => this.#unreferenced(projectId, options),
      collectObjects: (ids, options) => this.#collectObjects(projectId, ids, options),
      compact: (options) => this.#compact(projectId, options),
    }
  }

  #collect(projectId: string, options: CollectCallOptions = {}): Promise<CollectionReport> {
    const { olderThanMs = this.#periods.olderThanMs, undoMs = this.#periods.undoMs, dryRun = false } = options
    const olderThanEpochs = this.#epochs('olderThanMs', olderThanMs)
    const undoEpochs = this.#epochs('undoMs', undoMs)
    return this.#inFlight(options, async (signal) => {
      const beganAtMs = this.#nowMs()
      const settings = { olderThanEpochs, undoEpochs, signal, dryRun, onProgress: options.onProgress }
      const counts = await this.#collector().collect(projectId, this.#rootsOf(projectId), settings)
      if (counts === undefined) throw noObjects(projectId)
      if (!dryRun) this.#tell(projectId, beganAtMs, counts)
      return { ...counts, olderThanMs: olderThanEpochs * this.#epochMs, undoMs: undoEpochs * this.#epochMs }
    })
  }

  #restore(projectId: string, options: Pick<CollectCallOptions, 'signal' | 'onProgress'> = {}): Promise<ObjectAmount> {
    return this.#inFlight(options, async (signal) => {
      const beganAtMs = this.#nowMs()
      const restored = await this.#collector().restore(projectId, { signal, onProgress: options.onProgress })
      if (restored === undefined) throw noObjects(projectId)
      this.#tell(projectId, beganAtMs, { restored })
      return restored
    })
  }

  #unreferenced(projectId: string, options: UnreferencedCallOptions = {}): Promise<UnreferencedPage> {
    const { limit = PAGE_OBJECTS, after, topsOnly = false } = options
    if (!(Number.isSafeInteger(limit) && limit >= 1 && limit <= PAGE_OBJECTS_MAX))
      throw new StowageError(
        'invalid_request',
        `limit is ${limit}; it must be an integer from 1 to ${PAGE_OBJECTS_MAX}`,
      )
    return this.#inFlight(options, async (signal) => {
      const page = await this.#collector().unreferenced(projectId, this.#rootsOf(projectId), {
        signal,
        limit,
        after,
        topsOnly,
      })
      if (page === undefined) throw noObjects(projectId)
      return page
    })
  }

  #collectObjects(
    projectId: string,
    ids: readonly string[],
    options: Omit<CollectCallOptions, 'undoMs'> = {},
  ): Promise<ChosenReport> {
    const { olderThanMs = 0, dryRun = false, onProgress } = options
    if (ids.length === 0 || ids.length > CHOSEN_MAX)
      throw new StowageError('invalid_request', `${ids.length} objects are selected; select 1 to ${CHOSEN_MAX}`)
    for (const id of ids) checkObjectId(id)
    const olderThanEpochs = this.#epochs('olderThanMs', olderThanMs)
    return this.#inFlight(options, async (signal) => {
      const beganAtMs = this.#nowMs()
      const settings = { signal, olderThanEpochs, dryRun, onProgress }
      const report = await this.#collector().condemn(projectId, ids, this.#rootsOf(projectId), settings)
      if (report === undefined) throw noObjects(projectId)
      if (!dryRun) this.#tell(projectId, beganAtMs, report)
      return report
    })
  }

  #compact(projectId: string, options: CompactCallOptions = {}): Promise<CompactionReport> {
    const { all = false, processorShare = 1, onProgress } = options
    if (!isShare(processorShare))
      throw new StowageError('invalid_request', `processorShare is ${processorShare}; it must be above 0 and at most 1`)
    return this.#inFlight(options, async (signal) => {
      const beganAtMs = this.#nowMs()
      const settings = { signal, all, processorShare, onProgress }
      const report = await this.#compactor().compact(projectId, this.#rootsOf(projectId), settings)
      if (report === undefined) throw noObjects(projectId)
      const { merges, packsBefore, packsAfter, storedBytesBefore, storedBytesAfter } = report
      if (merges > 0)
        this.#deps.events.emit('compaction', () => ({
          projectId,
          merges,
          packsBefore,
          packsAfter,
          storedBytesBefore,
          storedBytesAfter,
          durationMs: this.#nowMs() - beganAtMs,
        }))
      return report
    })
  }

  /** Only what changed something is told. */
  #tell(
    projectId: string,
    beganAtMs: number,
    amounts: {
      readonly [K in 'condemned' | 'freed' | 'revived' | 'restored']?: Pick<ObjectAmount, 'objects' | 'jsonBytes'>
    },
  ): void {
    const { condemned = NOTHING, freed = NOTHING, revived = NOTHING, restored = NOTHING } = amounts
    if ([condemned, freed, revived, restored].every(({ objects }) => objects === 0)) return
    this.#deps.events.emit('collection', () => ({
      projectId,
      condemnedObjects: condemned.objects,
      condemnedJsonBytes: condemned.jsonBytes,
      freedObjects: freed.objects,
      freedJsonBytes: freed.jsonBytes,
      restoredObjects: restored.objects + revived.objects,
      restoredJsonBytes: restored.jsonBytes + revived.jsonBytes,
      durationMs: this.#nowMs() - beganAtMs,
    }))
  }

  #rootsOf(projectId: string): ReadRoots {
    return async () => {
      const roots: GraphRoot[] = []
      for await (const batch of rootsOf(this.#deps, projectId)) roots.push(...batch)
      return roots
    }
  }

  /** Rounded up; at least one whole epoch passes. */
  #epochs(name: string, ms: number): number {
    if (!isPeriod(ms)) throw new StowageError('invalid_request', `${name} is ${ms}; ${PERIOD_RULE}`)
    return Math.max(1, Math.ceil(ms / this.#epochMs))
  }

  get #epochMs(): number {
    return this.#deps.store.epochs?.epochMs ?? 1
  }

  #collector(): GraphCollector {
    const { collector } = this.#deps.store
    if (collector === undefined) throw new StowageError('not_supported', 'this store does not collect objects')
    return collector
  }

  #compactor(): GraphCompactor {
    const { compactor } = this.#deps.store
    if (compactor === undefined) throw new StowageError('not_supported', 'this store does not merge packs')
    return compactor
  }

  #nowMs(): number {
    return this.#deps.environment.monotonicMs()
  }

  async #inFlight<T>({ signal }: CallOptions, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { inFlightRequests, ready } = this.#deps
    inFlightRequests.checkOpen()
    const call = inFlightRequests.begin(signal)
    try {
      await ready()
      call.signal.throwIfAborted()
      return await work(call.signal)
    } finally {
      call.end()
    }
  }
}

const NOTHING = { objects: 0, jsonBytes: 0 }

export function isShare(processorShare: number): boolean {
  return processorShare > 0 && processorShare <= 1
}

/** Whether the project has no objects: models may exist before the first object does. */
export function isWithoutObjects(error: unknown): boolean {
  return error instanceof StowageError && error.code === 'not_found'
}

function noObjects(projectId: string): StowageError {
  return new StowageError('not_found', `the project ${quoted(projectId)} holds no objects`)
}
