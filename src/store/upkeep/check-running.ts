import type { StorageBackend } from '../../storage/backend.ts'
import { isSame } from '../../storage/maintenance-record.ts'
import { headKey, keyBounds, keyParts, parseHex, totalsKey } from '../records/keys.ts'
import { decodePackRecord } from '../records/pack-record.ts'
import { decodeHead, decodeTotals } from '../records/records.ts'
import { CheckState } from './check-state.ts'
import { type Finding, note } from './finding.ts'

/** What a first pass may leave to be confirmed. Beyond that, the damage is plain anyway. */
const SUSPICIONS_MAX = 10_000
const TRIES_MAX = 50

/**
 * The findings of a check beside servers that go on working. What one of them changes between two reads can look like
 * damage. Every change ends, and no two changes concern the same pack, object or blob in the same way, so damage counts
 * only if a second pass finds the same subject damaged too. The second pass is made only if the first one found damage.
 */
export async function* confirmedFindings(pass: () => AsyncIterable<Finding>): AsyncGenerator<Finding> {
  const suspicions = new Set<string>()
  for await (const finding of pass()) {
    if (finding.severity === 'note') yield finding
    else if (suspicions.size < SUSPICIONS_MAX) suspicions.add(nameOf(finding))
  }
  if (suspicions.size === 0) return
  for await (const finding of pass()) {
    const isConfirmed = suspicions.has(nameOf(finding)) || suspicions.size === SUSPICIONS_MAX
    if (finding.severity === 'damage' && isConfirmed) yield finding
  }
}

/**
 * Whether the packs of a project add up to its totals, at a moment between two changes. A project that changes all the
 * time is a note.
 */
export async function* lostPacksAtOnce(
  { records }: Pick<StorageBackend, 'records'>,
  { projectId, generation }: { readonly projectId: string; readonly generation: number },
  signal: AbortSignal,
): AsyncGenerator<Finding> {
  const keys = [headKey(projectId), totalsKey(projectId, generation)]
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const before = await records.getMany(keys, { signal })
    const [head, totals] = before
    if (head === undefined || totals === undefined) return
    const state = new CheckState()
    state.heads.set(projectId, decodeHead(keys[0], head))
    for await (const entries of records.range(keyBounds('pack', projectId, generation), { signal }))
      for (const { key, value } of entries)
        state.addPack(projectId, generation, parseHex(keyParts(key)[2]), decodePackRecord(key, value))
    const after = await records.getMany(keys, { signal })
    if (!before.every((value, at) => isSame(value, after[at]))) continue
    yield* state.lostPacks(projectId, generation, decodeTotals(keys[1], totals).storedBytes)
    return
  }
  yield note(projectId, 'packs of the project', 'they were not compared with the totals: both changed all the time')
}

function nameOf({ projectId, subject }: Finding): string {
  return JSON.stringify([projectId, subject])
}
