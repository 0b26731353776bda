import type { StoreEpoch } from './epochs.ts'
import type { GraphRoot } from './roots.ts'
import type {
  ChosenReport,
  CollectedAmount,
  CollectionProgress,
  CollectionReport,
  ObjectAmount,
} from './upkeep-wire-types.ts'

export type { ChosenReport, CollectedAmount, CollectionProgress, CollectionReport, ObjectAmount }

/** What a collection found and did. */
export type CollectionCounts = Omit<CollectionReport, 'olderThanMs' | 'undoMs'>

/**
 * Reads the roots of a project, in any order. The store calls it when it needs them: after it has noted the epoch and
 * the layout.
 */
export type ReadRoots = () => Promise<readonly GraphRoot[]>

/**
 * Why objects are not needed. `neverReferenced`: no version and no pin led to them at any collection. `oldVersion`: one
 * did, and it was deleted or ended.
 */
export type CollectionCause = keyof CollectedAmount['byCause']

/** All causes. */
export const COLLECTION_CAUSES: readonly CollectionCause[] = ['neverReferenced', 'oldVersion']

/** How a collection treats a project. */
export interface CollectOptions {
  readonly signal: AbortSignal
  /** Objects of this many epochs or fewer are kept, with everything below them. At least one. */
  readonly olderThanEpochs: number
  /** Objects that were condemned for longer than this many epochs are freed. At least one. */
  readonly undoEpochs: number
  /** Counts what a collection would do now, and changes nothing. */
  readonly dryRun?: boolean
  readonly onProgress?: ((progress: CollectionProgress) => void) | undefined
}

/** An object that no root reaches. */
export interface UnreferencedObject {
  /** Names the object. */
  readonly id: string
  /** Bytes of its JSON. */
  readonly jsonBytes: number
  /** `condemned`: it will be freed, unless it is restored. */
  readonly state: 'unreferenced' | 'condemned'
  /** Epochs since it was written, or since it was condemned. */
  readonly ageEpochs: number
  /** No held object refers to it or claims it: the top of a graph. */
  readonly isTop: boolean
}

/** A place in the list of unreferenced objects; the sequence and ordinal of the object that the page before ended with. */
export interface UnreferencedCursor {
  /** The generation of the project: a removal begins another. */
  readonly generation: number
  /** The number of the pack. */
  readonly sequence: number
  /** The place of the object in the pack. */
  readonly ordinal: number
}

export interface UnreferencedOptions {
  readonly signal: AbortSignal
  /** At most this many objects. */
  readonly limit: number
  readonly after?: UnreferencedCursor | undefined
  /** Only objects that nothing refers to. */
  readonly topsOnly?: boolean
}

/** A part of the objects that no root reaches. A page may be empty before the end. */
export interface UnreferencedPage {
  /** At most `limit`. */
  readonly objects: readonly UnreferencedObject[]
  /** `undefined` at the end. */
  readonly next: UnreferencedCursor | undefined
}

/** Objects that can be chosen in one call. */
export const CHOSEN_MAX = 1_000

/** Finds and frees objects that no root reaches. Several servers may collect the same project at the same time. */
export interface GraphCollector {
  /**
   * Condemns the objects that no root and no young object reaches, and frees those that were condemned long enough.
   * `undefined` if the project does not exist. Stopped by the signal at any moment without loss.
   */
  collect(projectId: string, roots: ReadRoots, options: CollectOptions): Promise<CollectionCounts | undefined>
  /**
   * Condemns the chosen objects, and the objects below them, as far as neither a root nor an object that was not chosen
   * leads to them. This works in a project without roots too. `undefined` if the project does not exist.
   */
  condemn(
    projectId: string,
    ids: readonly string[],
    roots: ReadRoots,
    options: Pick<CollectOptions, 'signal' | 'olderThanEpochs' | 'dryRun' | 'onProgress'>,
  ): Promise<ChosenReport | undefined>
  /**
   * Undo: every condemned object that was not freed is live again. Resolves to what it restored; `undefined` if the
   * project does not exist.
   */
  restore(projectId: string, options: Pick<CollectOptions, 'signal' | 'onProgress'>): Promise<ObjectAmount | undefined>
  /**
   * The objects that no root reaches, in the order in which they are stored. `undefined` if the project does not exist.
   * Throws `conflict` for a cursor of a generation that was removed.
   */
  unreferenced(projectId: string, roots: ReadRoots, options: UnreferencedOptions): Promise<UnreferencedPage | undefined>
  /**
   * Before a root is committed: makes the condemned objects of its closure live again. Throws `objects_missing` if one
   * of them was freed meanwhile. Does nothing for an object that is not held. The commit of the root must expect the
   * epoch that this resolves to: then every collection that frees something sees the root.
   */
  revive(projectId: string, rootObjectId: string, options: { readonly signal: AbortSignal }): Promise<StoreEpoch>
}
