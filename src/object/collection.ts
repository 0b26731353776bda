import type { StoreEpoch } from './epochs.ts'
import type { GraphRoot } from './roots.ts'

/**
 * Reads the roots of a project, in any order. The store calls it when it needs them: after it has noted the epoch and
 * the layout.
 */
export type ReadRoots = () => Promise<readonly GraphRoot[]>

/** A number of objects, with their bytes. */
export interface ObjectAmount {
  /** How many. */
  readonly objects: number
  /** Bytes of JSON. */
  readonly jsonBytes: number
  /** Their share of the compressed blocks of their packs. Compaction frees it on the disk. */
  readonly storedBytes: number
}

/**
 * Why objects are not needed. `neverReferenced`: no version and no pin led to them at any collection. `oldVersion`: one
 * did, and it was deleted or ended. `replaced`: lines of objects that another pack holds as well.
 */
export type CollectionCause = 'neverReferenced' | 'oldVersion' | 'replaced'

/** All causes. */
export const COLLECTION_CAUSES: readonly CollectionCause[] = ['neverReferenced', 'oldVersion', 'replaced']

/** A number of objects in all, and by cause. */
export interface CollectedAmount extends ObjectAmount {
  /** The same, divided by the cause. */
  readonly byCause: Readonly<Record<CollectionCause, ObjectAmount>>
}

/** How far a collection is. */
export interface CollectionProgress {
  /** What it does now. */
  readonly phase: 'marking' | 'condemning' | 'freeing' | 'restoring'
  /** Objects that this phase is done with. */
  readonly objects: number
  /** All objects of this phase, as far as known. */
  readonly objectsTotal: number
}

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

/** The result of one collection of a project. */
export interface CollectionReport {
  /** Whether it only counted, and changed nothing. */
  readonly dryRun: boolean
  /**
   * Why nothing was collected: the project has neither a version nor a pin (`noRoots`), or a pack of it cannot be read
   * (`damaged`). `null` for a project that was collected.
   */
  readonly skipped: 'noRoots' | 'damaged' | null
  /** What the project holds: reached, young, and condemned objects. */
  readonly held: ObjectAmount
  /** Objects that no root reaches, and that are too young to be condemned or are below such. */
  readonly young: ObjectAmount
  /** What this collection condemned: to be freed by a later one, unless it is restored. */
  readonly condemned: CollectedAmount
  /** What earlier collections condemned and this one freed. */
  readonly freed: CollectedAmount
  /** What earlier collections condemned, and can still be restored. */
  readonly restorable: ObjectAmount
  /** Condemned objects that a root reaches again. */
  readonly revived: ObjectAmount
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

/** The result of condemning chosen objects. */
export interface ChosenReport {
  /** The chosen objects, and those below them that nothing else leads to. */
  readonly condemned: ObjectAmount
  /** Chosen ids that stay, the first hundred: a root or another object leads to them, or they are too young. */
  readonly keptIds: readonly string[]
  /** How many stay. */
  readonly kept: number
  /** Chosen ids that the project does not hold. */
  readonly missing: number
}

/** Finds and frees objects that no root reaches. Several servers may collect the same project at the same time. */
export interface GraphCollector {
  /**
   * Condemns the objects that no root and no young object reaches, and frees those that were condemned long enough.
   * `undefined` if the project does not exist. Stopped by the signal at any moment without loss.
   */
  collect(projectId: string, roots: ReadRoots, options: CollectOptions): Promise<CollectionReport | undefined>
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
  /** Undo: every condemned object that was not freed is live again. Resolves to what it restored. */
  restore(projectId: string, options: Pick<CollectOptions, 'signal' | 'onProgress'>): Promise<ObjectAmount>
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
