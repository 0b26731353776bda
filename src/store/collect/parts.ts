import type { KeyedMutex } from '../../async/keyed-mutex.ts'
import type { Environment } from '../../environment.ts'
import type { MemoryBudget } from '../../memory/memory-budget.ts'
import type { StoreEpochs } from '../../object/epochs.ts'
import type { BlobStore, RecordStore } from '../../storage/backend.ts'
import type { Closure } from '../closure/closure.ts'
import type { PackCatalog } from '../records/pack-catalog.ts'
import type { StoredProject } from '../records/project-view.ts'

export interface CollectParts {
  readonly records: RecordStore
  readonly blobs: BlobStore
  readonly catalog: PackCatalog
  readonly environment: Environment
  /** Those of the committer. */
  readonly turns: KeyedMutex
  readonly budget: MemoryBudget
  readonly epochs: StoreEpochs
  /** Everything below a root, from its plan if it has one; `undefined` if the root is not held. */
  readonly closureOf: (projectId: string, rootId: string, signal: AbortSignal) => Promise<Closure | undefined>
  /** Ends the merge of packs that is under way in a project, if there is one: the layout does not rise before. */
  readonly finishMerge: (project: StoredProject, signal: AbortSignal) => Promise<void>
  /** Aborts when the store closes. */
  readonly closing: AbortSignal
}
