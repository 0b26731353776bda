import { list, named, type NamedShape, nullable, object, optional, text } from '../../../openapi/description/shape.ts'
import type { ModelUsage, NewPin, Pin, ProjectUsage, RootUsage } from '../../../client/resources/wire-types.ts'
import type { PinList } from '../wire-types.ts'
import { COUNT, messageText, nameText, OBJECT_ID, RESOURCE_ID, TIME } from './common.ts'

/** Pins, and what a project holds. */

const PIN_MEMBERS = { rootObjectId: OBJECT_ID }
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
    },
    'A pin to create.',
  ),
)

export const PIN: NamedShape<Pin> = named(
  'Pin',
  object(
    {
      id: RESOURCE_ID,
      ...PIN_MEMBERS,
      name: nullable(NAME, '`null` for none.'),
      reason: nullable(REASON, '`null` for none.'),
      createdAt: TIME,
      endsAt: nullable(TIME, 'From then on the pin keeps nothing; `null` for a pin without an end.'),
    },
    'Keeps an object and everything below it.',
  ),
)

export const PIN_LIST: NamedShape<PinList> = named(
  'PinList',
  object({ items: list(PIN, { itemsMax: 1_000 }) }, 'All pins of a project, the oldest first.'),
)

const SHARE = { objects: COUNT, jsonBytes: COUNT, ownObjects: COUNT, ownJsonBytes: COUNT }

const MODEL_USAGE: NamedShape<ModelUsage> = named(
  'ModelUsage',
  object(
    { modelId: RESOURCE_ID, versions: COUNT, ...SHARE },
    'What the versions of a model hold together; `own` is what no other model and no pin holds. Deleted versions count until they are removed.',
  ),
)

const ROOT_USAGE: NamedShape<RootUsage> = named(
  'RootUsage',
  object(
    {
      kind: text({ description: '`version` or `pin`.' }),
      id: RESOURCE_ID,
      modelId: nullable(RESOURCE_ID, 'The model of a version; `null` for a pin.'),
      rootObjectId: OBJECT_ID,
      ...SHARE,
    },
    'What one version or pin holds; `own` is what no other version and no pin holds.',
  ),
)

export const PROJECT_USAGE: NamedShape<ProjectUsage> = named(
  'ProjectUsage',
  object(
    {
      objects: COUNT,
      jsonBytes: COUNT,
      storedBytes: COUNT,
      unreferencedObjects: COUNT,
      unreferencedJsonBytes: COUNT,
      models: list(MODEL_USAGE),
      roots: list(ROOT_USAGE),
    },
    'What a project holds. `storedBytes` are those of its packs, compressed; unreferenced objects are those that no version and no pin leads to.',
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
