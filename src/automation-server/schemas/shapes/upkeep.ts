import {
  boolean,
  described,
  integer,
  list,
  named,
  type NamedShape,
  nullable,
  object,
  oneOf,
  optional,
  type OptionalShape,
  text,
} from '../../../openapi/description/shape.ts'
import type {
  ChosenReport,
  CollectedAmount,
  CollectionProgress,
  CollectionReport,
  CollectObjectsRequest,
  CollectRequest,
  CompactionProgress,
  CompactionReport,
  CompactRequest,
  DamagedPack,
  ObjectAmount,
  UnreferencedObject,
} from '../../../object/upkeep-wire-types.ts'
import { PERIOD_MS_MAX } from '../../../object/roots.ts'
import { CHOSEN_MAX } from '../../../object/collection.ts'
import { DAMAGED_MAX } from '../../../object/compaction.ts'
import { COUNT, OBJECT_ID, pageOf } from './common.ts'

/** Collection of unreferenced objects, and compaction. */

const AMOUNT_MEMBERS = {
  objects: described(COUNT, 'How many.'),
  jsonBytes: described(COUNT, 'Their bytes of JSON.'),
  storedBytes: described(
    COUNT,
    'Their share of the compressed blocks of their packs, which compaction frees on the disk.',
  ),
}

export const OBJECT_AMOUNT: NamedShape<ObjectAmount> = named(
  'ObjectAmount',
  object(AMOUNT_MEMBERS, 'A number of objects, with their bytes.'),
)

const COLLECTED_AMOUNT: NamedShape<CollectedAmount> = named(
  'CollectedAmount',
  object(
    {
      ...AMOUNT_MEMBERS,
      byCause: object(
        {
          neverReferenced: described(OBJECT_AMOUNT, 'No version and no pin led to them at any collection.'),
          oldVersion: described(OBJECT_AMOUNT, 'A version or a pin that is gone led to them.'),
        },
        'The same, divided by the cause.',
      ),
    },
    'A number of objects, with their bytes, by the cause for which they are not needed.',
  ),
)

const DRY_RUN = optional(boolean('`true` counts what would happen, and changes nothing.'))

function graceMs(description: string): OptionalShape<number> {
  return optional(integer(0, PERIOD_MS_MAX, description))
}

export const COLLECT_REQUEST: NamedShape<CollectRequest> = named(
  'CollectRequest',
  object(
    {
      dryRun: DRY_RUN,
      olderThanMs: graceMs(
        'Younger objects are kept, with everything below them. The period of the server by default, which is 14 days unless its operator has set another one. The server counts in epochs of ten minutes and rounds up.',
      ),
      undoMs: graceMs(
        'How long condemned objects can be restored before a later collection frees them. By default that of the server, which is 14 days unless its operator has set another one.',
      ),
    },
    'How to collect a project.',
  ),
)

const CONDEMNED = 'Objects that nothing leads to: a later collection frees them, unless they are restored.'

export const COLLECTION_REPORT: NamedShape<CollectionReport> = named(
  'CollectionReport',
  object(
    {
      dryRun: boolean('Whether nothing was changed.'),
      skipped: nullable(
        oneOf(['noRoots', 'damaged']),
        'Why nothing was collected: the project has neither a version nor a pin, or a pack of it cannot be read. `null` if it was collected.',
      ),
      olderThanMs: described(COUNT, 'Objects of this age or younger were kept: the period in whole epochs.'),
      undoMs: described(COUNT, 'How long condemned objects can be restored: the period in whole epochs.'),
      held: described(OBJECT_AMOUNT, 'What the project holds: reached, young and condemned objects.'),
      young: described(OBJECT_AMOUNT, 'Objects that nothing leads to, and that are too young or are below such.'),
      condemned: described(COLLECTED_AMOUNT, CONDEMNED),
      freed: described(COLLECTED_AMOUNT, 'Objects that earlier collections condemned, and that are gone for good.'),
      replacedCopies: described(
        OBJECT_AMOUNT,
        'Condemned copies of objects that an upload stored again. The objects stay; compaction frees the space of the copies.',
      ),
      restorable: described(OBJECT_AMOUNT, 'Objects that earlier collections condemned, and that can be restored.'),
      revived: described(OBJECT_AMOUNT, 'Condemned objects that a version or a pin leads to again.'),
    },
    'The result of a collection.',
  ),
)

export const COLLECTION_PROGRESS: NamedShape<CollectionProgress> = named(
  'CollectionProgress',
  object(
    {
      phase: oneOf(['marking', 'condemning', 'freeing', 'restoring'], 'What it does now.'),
      objects: described(COUNT, 'Objects that this phase is done with.'),
      objectsTotal: described(COUNT, 'All objects of this phase, as far as known.'),
    },
    'How far a collection is.',
  ),
)

export const UNREFERENCED_OBJECT: NamedShape<UnreferencedObject> = named(
  'UnreferencedObject',
  object(
    {
      id: described(OBJECT_ID, 'Names the object.'),
      jsonBytes: described(COUNT, 'Its bytes of JSON.'),
      state: oneOf(['unreferenced', 'condemned'], '`condemned`: it will be freed, unless it is restored.'),
      ageMs: described(COUNT, 'The time since it was written or condemned, counted in epochs of the store.'),
      isTop: boolean('Whether no object refers to it: the top of a graph.'),
    },
    'An object that no version and no pin leads to.',
  ),
)

export const COLLECT_OBJECTS_REQUEST: NamedShape<CollectObjectsRequest> = named(
  'CollectObjectsRequest',
  object(
    {
      ids: list(OBJECT_ID, { itemsMin: 1, itemsMax: CHOSEN_MAX, description: 'The chosen objects.' }),
      dryRun: DRY_RUN,
      olderThanMs: graceMs('Younger objects stay; one epoch of the store by default.'),
    },
    'Which objects to condemn, with everything below them that nothing else leads to.',
  ),
)

export const CHOSEN_REPORT: NamedShape<ChosenReport> = named(
  'ChosenReport',
  object(
    {
      condemned: described(OBJECT_AMOUNT, 'The chosen objects, and those below them that nothing else leads to.'),
      keptIds: list(OBJECT_ID, { itemsMax: 100, description: 'Chosen objects that stay, the first hundred.' }),
      kept: described(COUNT, 'How many stay: a version, a pin or another object leads to them, or they are too young.'),
      missingIds: list(OBJECT_ID, {
        itemsMax: 100,
        description: 'Chosen ids that the project does not hold, the first hundred.',
      }),
      missing: described(COUNT, 'How many the project does not hold.'),
    },
    'The result of condemning chosen objects.',
  ),
)

export const COMPACT_REQUEST: NamedShape<CompactRequest> = named(
  'CompactRequest',
  object(
    { all: optional(boolean('Merges all packs that can be merged, not only the fewest that keep their number low.')) },
    'How to compact a project.',
  ),
)

const DAMAGED_PACK: NamedShape<DamagedPack> = named(
  'DamagedPack',
  object(
    {
      packId: described(text(), 'Names the pack, as `stowage check` does.'),
      message: described(text(), 'What is wrong with it.'),
    },
    'A pack that cannot be read whole.',
  ),
)

export const COMPACTION_REPORT: NamedShape<CompactionReport> = named(
  'CompactionReport',
  object(
    {
      merges: described(COUNT, 'Merges that took effect.'),
      packsBefore: described(COUNT, 'Packs in use before; replaced ones are not counted.'),
      packsAfter: described(COUNT, 'Packs in use after.'),
      storedBytesBefore: described(COUNT, 'Their bytes before.'),
      storedBytesAfter: described(COUNT, 'Their bytes after.'),
      retiredBytes: described(
        COUNT,
        'Bytes of all replaced packs that are still on the disk, which they leave a day after they were replaced.',
      ),
      stopped: nullable(
        oneOf(['storageFull']),
        'Why it stopped before the end: the storage is full. `null` if it came to the end.',
      ),
      damagedPacks: described(COUNT, 'Packs that were not merged because they cannot be read whole.'),
      damaged: list(DAMAGED_PACK, { itemsMax: DAMAGED_MAX, description: 'The first hundred of these packs.' }),
    },
    'The result of a compaction.',
  ),
)

export const COMPACTION_PROGRESS: NamedShape<CompactionProgress> = named(
  'CompactionProgress',
  object(
    {
      merges: described(COUNT, 'Merges that took effect.'),
      storedBytes: described(COUNT, 'Bytes of packs that were read.'),
      storedBytesTotal: described(COUNT, 'Bytes of all packs that were chosen so far.'),
    },
    'How far a compaction is.',
  ),
)

export const UPKEEP_SHAPES: readonly NamedShape<unknown>[] = [
  OBJECT_AMOUNT,
  COLLECTED_AMOUNT,
  COLLECT_REQUEST,
  COLLECTION_REPORT,
  COLLECTION_PROGRESS,
  UNREFERENCED_OBJECT,
  pageOf(UNREFERENCED_OBJECT),
  COLLECT_OBJECTS_REQUEST,
  CHOSEN_REPORT,
  COMPACT_REQUEST,
  DAMAGED_PACK,
  COMPACTION_REPORT,
  COMPACTION_PROGRESS,
]
