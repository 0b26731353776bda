import { StowageError } from '../../errors.ts'
import type { PinStore } from '../../object/roots.ts'
import { decodeRecord } from '../records/codec.ts'
import { boundsOf, projectKey } from '../records/keys.ts'
import type { ProjectScope } from '../records/store.ts'
import { checkResourceId, notFoundError } from '../schemas/checks.ts'
import type { PruneRequest, PruneResult, RetentionRule } from '../schemas/types.ts'
import type { Deletion } from './deletion.ts'
import type { Models } from './models.ts'
import type { DomainParts } from './parts.ts'
import { type VersionRecord, versionView } from './versions.ts'

const DAY_MS = 86_400_000
/** Versions that one call deletes at most. */
const PRUNED_MAX = 1_000

type Parts = Pick<DomainParts, 'store'> & {
  readonly models: Models
  readonly deletion: Deletion
  readonly pins: PinStore | undefined
}

/**
 * Deletes the versions that the retention rule of a model does not keep. They can be restored like any deleted version.
 */
export class Retention {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Throws `not_found`, and `conflict` for a deleted model and for one without a rule if none is given. */
  async prune(
    projectId: string,
    modelId: string,
    { dryRun = false, retention }: PruneRequest = {},
    signal: AbortSignal = new AbortController().signal,
  ): Promise<PruneResult> {
    checkResourceId(modelId, 'model')
    const { store, models, deletion } = this.#parts
    const scope = await store.scope(projectId)
    if (scope === undefined) throw notFoundError('model', modelId)
    const model = await models.live(scope, modelId)
    const rule = retention ?? model.value.retention
    if (rule === null)
      throw new StowageError('conflict', 'the model has no retention rule; set one, or send one in the request')
    const expired = await this.#expired(scope, modelId, rule, signal)
    const chosen = expired.slice(0, PRUNED_MAX)
    const versions = []
    for (const record of chosen) {
      signal.throwIfAborted()
      const version = dryRun
        ? versionView(record)
        : await deletion.deleteVersion(projectId, modelId, record.id, { byRetention: true })
      // Somebody may have marked it as kept meanwhile.
      if (dryRun || version.deletedAt !== null) versions.push(version)
    }
    return { dryRun, versions, hasMore: expired.length > chosen.length }
  }

  /** The newest first, one more than a call deletes. */
  async #expired(
    scope: ProjectScope,
    modelId: string,
    rule: RetentionRule,
    signal: AbortSignal,
  ): Promise<readonly VersionRecord[]> {
    const { store, pins } = this.#parts
    const pinned = new Set((await pins?.list(scope.projectId))?.map(({ rootObjectId }) => rootObjectId))
    const keeps = keeperOf(rule, store.clock.now())
    const expired: VersionRecord[] = []
    const bounds = boundsOf(projectKey(scope, 'version', modelId))
    for await (const entries of store.records.range({ ...bounds, reverse: true }, { signal })) {
      for (const { key, value } of entries) {
        const version = decodeRecord<VersionRecord>(key, value)
        if (version.deletion !== null) continue
        const isKept = keeps(version) || version.kept || pinned.has(version.rootObjectId)
        if (!isKept && expired.push(version) > PRUNED_MAX) return expired
      }
    }
    return expired
  }
}

/** Tells of each version, the newest first, whether the rule keeps it. The newest is always kept. */
export function keeperOf(
  { keepLastCount = 1, keepDailyDays = 0, keepAllDays = 0 }: RetentionRule,
  nowMs: number,
): (version: { readonly createdAt: string }) => boolean {
  let seen = 0
  let lastDay = ''
  return ({ createdAt }) => {
    const ageMs = nowMs - Date.parse(createdAt)
    const day = createdAt.slice(0, 'yyyy-mm-dd'.length)
    const isLastOfDay = day !== lastDay
    lastDay = day
    return seen++ < keepLastCount || (isLastOfDay && ageMs < keepDailyDays * DAY_MS) || ageMs < keepAllDays * DAY_MS
  }
}
