import { named, type NamedShape, nullable, object, optional } from '../../../openapi/description/shape.ts'
import type { Model, NewModel, NewModelVersion, NewRunVersion, Version } from '../wire-types.ts'
import { COUNT, messageText, nameText, OBJECT_ID, pageOf, PROJECT_ID, RESOURCE_ID, TIME } from './common.ts'

/** Models and versions. */

const NAME = nameText('One line.')
const NEW_VERSION_MEMBERS = { rootObjectId: OBJECT_ID, message: messageText('For people; it may have several lines.') }

export const NEW_MODEL: NamedShape<NewModel> = named('NewModel', object({ name: NAME }, 'A model to create.'))

export const MODEL: NamedShape<Model> = named(
  'Model',
  object(
    {
      id: RESOURCE_ID,
      name: NAME,
      createdAt: TIME,
      versionCount: COUNT,
      latestVersionId: nullable(RESOURCE_ID, '`null` before the first version.'),
    },
    'A named line of versions.',
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
      id: RESOURCE_ID,
      modelId: RESOURCE_ID,
      ...NEW_VERSION_MEMBERS,
      source: nullable(NAME, 'What created it, such as the name of an application; `null` if unknown.'),
      runId: nullable(
        RESOURCE_ID,
        'The run that created it; `null` for versions that people and applications created.',
      ),
      createdAt: TIME,
    },
    'A state of a model: the graph below one object.',
  ),
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
  MODEL,
  pageOf(MODEL),
  NEW_VERSION,
  VERSION,
  pageOf(VERSION),
  NEW_RUN_VERSION,
]
