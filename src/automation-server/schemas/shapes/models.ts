import {
  boolean,
  described,
  integer,
  list,
  named,
  type NamedShape,
  nullable,
  object,
  optional,
  wrong,
} from '../../../openapi/description/shape.ts'
import type {
  Model,
  ModelChange,
  NewModelVersion,
  PruneRequest,
  PruneResult,
  RetentionRule,
  Version,
} from '../../../client/resources/wire-types.ts'
import type { NewModel, NewRunVersion, VersionChange } from '../wire-types.ts'
import { COUNT, messageText, nameText, OBJECT_ID, pageOf, PROJECT_ID, RESOURCE_ID, TIME } from './common.ts'

/** Models and versions. */

const RETENTION_COUNT_MAX = 100_000
const RETENTION_DAYS_MAX = 36_500

const NAME = nameText('One line.')
const NEW_VERSION_MEMBERS = {
  rootObjectId: described(OBJECT_ID, 'The root of the graph that the version consists of.'),
  message: messageText('For people; it may have several lines.'),
}

const KEPT = boolean('Whether no retention rule deletes it.')

export const NEW_MODEL: NamedShape<NewModel> = named('NewModel', object({ name: NAME }, 'A model to create.'))

const DELETED_AT = nullable(
  TIME,
  'When it was deleted; `null` unless it is. It can be restored within the grace period of the server.',
)

const RETENTION_MEMBERS = object(
  {
    keepLastCount: optional(integer(1, RETENTION_COUNT_MAX, 'Keeps that many of the newest versions.')),
    keepDailyDays: optional(
      integer(1, RETENTION_DAYS_MAX, 'Keeps the last version of each day (UTC) for that many days.'),
    ),
    keepAllDays: optional(integer(1, RETENTION_DAYS_MAX, 'Keeps every version for that many days.')),
  },
  'Which versions of a model are kept: those that one of the members keeps. The latest version, versions with `kept`, and versions whose root is pinned are always kept. The server deletes the others once a day.',
)

export const RETENTION_RULE: NamedShape<RetentionRule> = named('RetentionRule', {
  schema: { ...RETENTION_MEMBERS.schema, minProperties: 1 },
  read: (value, at) => {
    const rule = RETENTION_MEMBERS.read(value, at)
    if (Object.keys(rule).length === 0) throw wrong(at, 'an object with at least one member', 'an empty object')
    return rule
  },
})

export const MODEL: NamedShape<Model> = named(
  'Model',
  object(
    {
      id: described(RESOURCE_ID, 'Names the model.'),
      name: NAME,
      createdAt: described(TIME, 'The time of creation.'),
      versionCount: described(COUNT, 'The number of versions.'),
      latestVersionId: nullable(RESOURCE_ID, '`null` before the first version.'),
      retention: nullable(RETENTION_RULE, '`null` if all versions are kept.'),
      deletedAt: DELETED_AT,
    },
    'A named series of versions.',
  ),
)

export const MODEL_CHANGE: NamedShape<ModelChange> = named(
  'ModelChange',
  object(
    { name: optional(NAME), retention: optional(nullable(RETENTION_RULE, '`null` keeps all versions.')) },
    'Members that are left out stay as they are.',
  ),
)

export const NEW_VERSION: NamedShape<NewModelVersion> = named(
  'NewVersion',
  object(
    {
      ...NEW_VERSION_MEMBERS,
      source: optional(nullable(NAME, 'What creates it, such as the name of an application.')),
    },
    'A version to create. Everything below its root must have been uploaded before.',
  ),
)

export const VERSION: NamedShape<Version> = named(
  'Version',
  object(
    {
      id: described(RESOURCE_ID, 'Names the version.'),
      modelId: described(RESOURCE_ID, 'The model that the version belongs to.'),
      ...NEW_VERSION_MEMBERS,
      source: nullable(NAME, 'What created it, such as the name of an application; `null` if unknown.'),
      runId: nullable(
        RESOURCE_ID,
        'The run that created it; `null` for versions that people and applications created.',
      ),
      createdAt: described(TIME, 'The time of creation.'),
      kept: KEPT,
      deletedAt: DELETED_AT,
    },
    'A state of a model: the graph below one object.',
  ),
)

export const PRUNE_REQUEST: NamedShape<PruneRequest> = named(
  'PruneRequest',
  object(
    {
      dryRun: optional(boolean('`true` lists the versions that would be deleted, and deletes nothing.')),
      retention: optional(described(RETENTION_RULE, 'The rule to apply; that of the model by default.')),
    },
    'Which versions to delete: those that the rule does not keep; that of the model by default.',
  ),
)

export const PRUNE_RESULT: NamedShape<PruneResult> = named(
  'PruneResult',
  object(
    {
      dryRun: boolean('Whether nothing was deleted.'),
      versions: list(VERSION, { itemsMax: 1_000, description: 'The versions, the newest first.' }),
      hasMore: boolean('Whether more are to be deleted than one call does.'),
    },
    'Versions that were deleted, or would be.',
  ),
)

export const VERSION_CHANGE: NamedShape<VersionChange> = named(
  'VersionChange',
  object({ kept: optional(KEPT) }, 'Members that are left out stay as they are.'),
)

export const NEW_RUN_VERSION: NamedShape<NewRunVersion> = named(
  'NewRunVersion',
  object(
    { projectId: optional(PROJECT_ID), modelId: RESOURCE_ID, ...NEW_VERSION_MEMBERS },
    'A version that a run creates. `projectId` is the project of the run by default.',
  ),
)

export const MODEL_SHAPES: readonly NamedShape<unknown>[] = [
  NEW_MODEL,
  RETENTION_RULE,
  MODEL,
  MODEL_CHANGE,
  pageOf(MODEL),
  NEW_VERSION,
  VERSION,
  VERSION_CHANGE,
  PRUNE_REQUEST,
  PRUNE_RESULT,
  pageOf(VERSION),
  NEW_RUN_VERSION,
]
