/* Generated from the shapes of the wire (`src/openapi/description/shape.ts`): run `npm run schemas`. */

/** A number of objects, with their bytes. */
export interface ObjectAmount {
  /** How many. */
  readonly objects: number
  /** Their bytes of JSON. */
  readonly jsonBytes: number
  /** Their share of the compressed blocks of their packs, which compaction frees on the disk. */
  readonly storedBytes: number
}

/** A number of objects, with their bytes, by the cause for which they are not needed. */
export interface CollectedAmount {
  /** How many. */
  readonly objects: number
  /** Their bytes of JSON. */
  readonly jsonBytes: number
  /** Their share of the compressed blocks of their packs, which compaction frees on the disk. */
  readonly storedBytes: number
  /** The same, divided by the cause. */
  readonly byCause: {
    /** No version and no pin led to them at any collection. */
    readonly neverReferenced: ObjectAmount
    /** A version or a pin that is gone led to them. */
    readonly oldVersion: ObjectAmount
  }
}

/** How to collect a project. */
export interface CollectRequest {
  /** `true` counts what would happen, and changes nothing. */
  readonly dryRun?: boolean
  /**
   * Younger objects are kept, with everything below them. The period of the server by default, which is
   * 14 days unless its operator has set another one. The server counts in epochs of ten minutes and
   * rounds up.
   */
  readonly olderThanMs?: number
  /**
   * How long condemned objects can be restored before a later collection frees them. By default that of
   * the server, which is 14 days unless its operator has set another one.
   */
  readonly undoMs?: number
}

/** The result of a collection. */
export interface CollectionReport {
  /** Whether nothing was changed. */
  readonly dryRun: boolean
  /**
   * Why nothing was collected: the project has neither a version nor a pin, or a pack of it cannot be
   * read. `null` if it was collected.
   */
  readonly skipped: 'noRoots' | 'damaged' | null
  /** Objects of this age or younger were kept: the period in whole epochs. */
  readonly olderThanMs: number
  /** How long condemned objects can be restored: the period in whole epochs. */
  readonly undoMs: number
  /** What the project holds: reached, young and condemned objects. */
  readonly held: ObjectAmount
  /** Objects that nothing leads to, and that are too young or are below such. */
  readonly young: ObjectAmount
  /** Objects that nothing leads to: a later collection frees them, unless they are restored. */
  readonly condemned: CollectedAmount
  /** Objects that earlier collections condemned, and that are gone for good. */
  readonly freed: CollectedAmount
  /**
   * Condemned copies of objects that an upload stored again. The objects stay; compaction frees the
   * space of the copies.
   */
  readonly replacedCopies: ObjectAmount
  /** Objects that earlier collections condemned, and that can be restored. */
  readonly restorable: ObjectAmount
  /** Condemned objects that a version or a pin leads to again. */
  readonly revived: ObjectAmount
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

/** An object that no version and no pin leads to. */
export interface UnreferencedObject {
  /** Names the object. */
  readonly id: string
  /** Its bytes of JSON. */
  readonly jsonBytes: number
  /** `condemned`: it will be freed, unless it is restored. */
  readonly state: 'unreferenced' | 'condemned'
  /** The time since it was written or condemned, counted in epochs of the store. */
  readonly ageMs: number
  /** Whether no object refers to it: the top of a graph. */
  readonly isTop: boolean
}

/** Which objects to condemn, with everything below them that nothing else leads to. */
export interface CollectObjectsRequest {
  /** The chosen objects. */
  readonly ids: readonly string[]
  /** `true` counts what would happen, and changes nothing. */
  readonly dryRun?: boolean
  /** Younger objects stay; one epoch of the store by default. */
  readonly olderThanMs?: number
}

/** The result of condemning chosen objects. */
export interface ChosenReport {
  /** The chosen objects, and those below them that nothing else leads to. */
  readonly condemned: ObjectAmount
  /** Chosen objects that stay, the first hundred. */
  readonly keptIds: readonly string[]
  /** How many stay: a version, a pin or another object leads to them, or they are too young. */
  readonly kept: number
  /** Chosen ids that the project does not hold, the first hundred. */
  readonly missingIds: readonly string[]
  /** How many the project does not hold. */
  readonly missing: number
}

/** How to compact a project. */
export interface CompactRequest {
  /** Merges all packs that can be merged, not only the fewest that keep their number low. */
  readonly all?: boolean
}

/** A pack that cannot be read whole. */
export interface DamagedPack {
  /** Names the pack, as `stowage check` does. */
  readonly packId: string
  /** What is wrong with it. */
  readonly message: string
}

/** The result of a compaction. */
export interface CompactionReport {
  /** Merges that took effect. */
  readonly merges: number
  /** Packs in use before; replaced ones are not counted. */
  readonly packsBefore: number
  /** Packs in use after. */
  readonly packsAfter: number
  /** Their bytes before. */
  readonly storedBytesBefore: number
  /** Their bytes after. */
  readonly storedBytesAfter: number
  /**
   * Bytes of all replaced packs that are still on the disk, which they leave a day after they were
   * replaced.
   */
  readonly retiredBytes: number
  /** Why it stopped before the end: the storage is full. `null` if it came to the end. */
  readonly stopped: 'storageFull' | null
  /** Packs that were not merged because they cannot be read whole. */
  readonly damagedPacks: number
  /** The first hundred of these packs. */
  readonly damaged: readonly DamagedPack[]
}

/** How far a compaction is. */
export interface CompactionProgress {
  /** Merges that took effect. */
  readonly merges: number
  /** Bytes of packs that were read. */
  readonly storedBytes: number
  /** Bytes of all packs that were chosen so far. */
  readonly storedBytesTotal: number
}
