import { StowageError } from '../errors.ts'
import type { FaultKind } from './faults.ts'
import type { ServedOperation } from './operations.ts'
import { Violation } from './oracle.ts'

/** Faults after which an operation may report an unusable storage. */
const DISTURBANCES: readonly FaultKind[] = [
  'error',
  'lostAnswer',
  'partial',
  'full',
  'hang',
  'slow',
  'sleep',
  'powerLoss',
  'crash',
]

/** Operations that others may keep from their work. */
const UPKEEP: ReadonlySet<string> = new Set(['collect', 'choose', 'restore', 'compact'])

/** What happened so far in the run, and at the operation that failed. */
export interface Circumstances {
  readonly fired: ReadonlySet<FaultKind>
  /** Servers were stopped on purpose. */
  readonly isRestarted: boolean
  readonly isReindexed: boolean
  /** Something may have been collected. */
  readonly isCollected: boolean
  readonly operation?: ServedOperation
  /** The project may have been removed since the operation began; true where there is no operation. */
  readonly isRemoved: boolean
}

/** Whether the run has a cause for this failure. */
export function isExpected(error: unknown, circumstances: Circumstances): boolean {
  const { fired, isRestarted, isReindexed, isCollected, isRemoved, operation } = circumstances
  const code = codeOf(error)
  if (fired.has('flip') && isNoticedDamage(error)) return true
  // The point at which an export began can be damaged; then nothing tells which history its cursors belong to.
  if (code === 'conflict' && operation?.kind === 'export' && fired.has('flip')) return true
  // A server that slept in the middle of an upload finds that its blob was swept.
  if (code === 'overloaded' && operation?.kind === 'upload') return fired.has('sleep')
  // Counting goes on for longer than its client may wait.
  if (code === 'overloaded' && operation?.kind === 'usage') return DISTURBANCES.some((kind) => fired.has(kind))
  // Several servers collect and merge at the same time: one of them is asked to try again.
  if (code === 'overloaded' && operation !== undefined && UPKEEP.has(operation.kind)) return true
  if (code === 'storage_unavailable' || code === 'storage_full')
    return isRestarted || DISTURBANCES.some((kind) => fired.has(kind))
  if (code === 'closing' || (error instanceof Error && error.message === 'the store is closing')) return isRestarted
  if (code === 'project_removed' || code === 'not_found' || code === 'conflict') return isRemoved
  if (code === 'base_mismatch') return isRemoved || isReindexed || isCollected
  const hasGivenUp = error instanceof Error && (error.message === 'the client gave up' || error.name === 'AbortError')
  // An export waits for packs that somebody committed and could not apply, for example because the record of an object is damaged.
  if (hasGivenUp && operation?.kind === 'export')
    return fired.has('flip') || DISTURBANCES.some((kind) => fired.has(kind))
  if (hasGivenUp) return fired.has('slow') || fired.has('hang') || fired.has('sleep')
  return operation?.kind === 'upload' && operation.isBroken && error instanceof StowageError
}

/** A client or the service noticed changed bytes. */
export function isNoticedDamage(error: unknown): boolean {
  return codeOf(error) === 'corrupt_data' || (error instanceof Error && /^Z_|^ERR_ZLIB/.test(codeOf(error) ?? ''))
}

export function codeOf(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined
}

export function wordsOf(error: unknown): string {
  if (error instanceof Violation) return error.message
  if (error instanceof StowageError) return `${error.code}: ${error.message}${causeOf(error)}`
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

function causeOf({ cause }: Error): string {
  return cause instanceof Error ? ` (${cause.message})` : ''
}
