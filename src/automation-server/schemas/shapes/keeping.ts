import {
  described,
  integer,
  list,
  named,
  type NamedShape,
  nullable,
  object,
  optional,
  text,
} from '../../../openapi/description/shape.ts'
import { PERIOD_MS_MAX } from '../../../object/roots.ts'
import type { ModelUsage, NewPin, Pin, ProjectUsage, RootUsage } from '../../../client/resources/wire-types.ts'
import type { PinList } from '../wire-types.ts'
import { COUNT, messageText, nameText, OBJECT_ID, RESOURCE_ID, TIME } from './common.ts'

/** Pins, and the usage of a project. */

const PIN_MEMBERS = { rootObjectId: described(OBJECT_ID, 'The object that is kept, with everything below it.') }
const NAME = nameText('One line.')
const REASON = messageText('For people; it may have several lines.')

export const NEW_PIN: NamedShape<NewPin> = named(
  'NewPin',
  object(
    {
      ...PIN_MEMBERS,
      name: optional(nullable(NAME, '`null` for none.')),
      reason: optional(nullable(REASON, '`null` for none.')),
      endsAt: optional(nullable(TIME, 'From then on the pin keeps nothing; `null` for a pin without an end.')),
      lifetimeMs: optional(
        integer(
          1,
          PERIOD_MS_MAX,
          'How long the pin keeps the object, from its creation on by the clock of the server. If `endsAt` is given too, the earlier end counts.',
        ),
      ),
    },
    'A pin to create.',
  ),
)

export const PIN: NamedShape<Pin> = named(
  'Pin',
  object(
    {
      id: described(RESOURCE_ID, 'Names the pin.'),
      ...PIN_MEMBERS,
      name: nullable(NAME, '`null` for none.'),
      reason: nullable(REASON, '`null` for none.'),
      createdAt: described(TIME, 'The time of creation.'),
      endsAt: nullable(TIME, 'From then on the pin keeps nothing; `null` for a pin without an end.'),
    },
    'Keeps an object and everything below it.',
  ),
)

export const PIN_LIST: NamedShape<PinList> = named(
  'PinList',
  object({ items: list(PIN, { itemsMax: 1_000 }) }, 'All pins of a project, the oldest first.'),
)

const SHARE = {
  objects: described(COUNT, 'Objects that can be reached from here.'),
  jsonBytes: described(COUNT, 'Their bytes of JSON.'),
  ownObjects: described(COUNT, 'Objects that can be reached from here alone.'),
  ownJsonBytes: described(COUNT, 'Their bytes of JSON.'),
}

const MODEL_USAGE: NamedShape<ModelUsage> = named(
  'ModelUsage',
  object(
    { modelId: described(RESOURCE_ID, 'The model.'), versions: described(COUNT, 'The number of versions.'), ...SHARE },
    'The usage of all versions of a model; `own` counts objects that no other model and no pin holds. Deleted versions count until they are removed.',
  ),
)

const ROOT_USAGE: NamedShape<RootUsage> = named(
  'RootUsage',
  object(
    {
      kind: text({ description: '`version` or `pin`.' }),
      id: described(RESOURCE_ID, 'Names the version or the pin.'),
      modelId: nullable(RESOURCE_ID, 'The model of a version; `null` for a pin.'),
      rootObjectId: described(OBJECT_ID, 'The root of the graph that it consists of.'),
      ...SHARE,
    },
    'The usage of one version or pin; `own` counts objects that no other version and no pin holds.',
  ),
)

export const PROJECT_USAGE: NamedShape<ProjectUsage> = named(
  'ProjectUsage',
  object(
    {
      objects: described(COUNT, 'All objects of the project.'),
      jsonBytes: described(COUNT, 'Their bytes of JSON.'),
      storedBytes: described(COUNT, 'Bytes of its packs in storage, compressed.'),
      retiredBytes: described(COUNT, 'Bytes of packs that a merge replaced, and that stay in storage for a day.'),
      planBytes: described(
        COUNT,
        'Bytes of its plans in storage, which make downloads fast, with those that were replaced and stay for a day.',
      ),
      unreferencedObjects: described(COUNT, 'Objects that no version and no pin leads to.'),
      unreferencedJsonBytes: described(COUNT, 'Their bytes of JSON.'),
      models: list(MODEL_USAGE, { description: 'The usage of each model.' }),
      roots: list(ROOT_USAGE, { description: 'The usage of each version and pin.' }),
    },
    'What a project holds. Unreferenced objects are those that no version and no pin leads to. The storage also holds files of runs and records, which are not counted here.',
  ),
)

export const KEEPING_SHAPES: readonly NamedShape<unknown>[] = [
  NEW_PIN,
  PIN,
  PIN_LIST,
  MODEL_USAGE,
  ROOT_USAGE,
  PROJECT_USAGE,
]
