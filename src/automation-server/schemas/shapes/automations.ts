import {
  boolean,
  described,
  list,
  named,
  type NamedShape,
  object,
  oneOf,
  optional,
} from '../../../openapi/description/shape.ts'
import type { Automation, AutomationChange, AutomationTrigger, NewAutomation, RunStart } from '../wire-types.ts'
import { FUNCTION_ID, nameText, pageOf, PROJECT_ID, RESOURCE_ID, TIME } from './common.ts'
import { INPUTS } from './functions.ts'

/** Automations. */

const NAME = nameText('One line.')
const ENABLED = boolean('Whether new versions start it. It can be started by hand either way. `true` by default.')

const PROJECTS = list(PROJECT_ID, {
  itemsMax: 100,
  description: 'Other projects in which its runs may read and write. The request must have the right to write there.',
})

const AUTOMATION_TRIGGER: NamedShape<AutomationTrigger> = named(
  'AutomationTrigger',
  oneOf(
    ['version', 'manual'],
    '`version`: every new version of the model starts it, and it can be started by hand. `manual`: only by hand.',
  ),
)

const TRIGGER_WORDS = 'Whether new versions start it, or only people.'

export const NEW_AUTOMATION: NamedShape<NewAutomation> = named(
  'NewAutomation',
  object(
    {
      name: NAME,
      functionId: described(FUNCTION_ID, 'The function that runs.'),
      modelId: described(RESOURCE_ID, 'The model on whose versions it runs.'),
      inputs: INPUTS,
      trigger: described(AUTOMATION_TRIGGER, TRIGGER_WORDS),
      enabled: optional(ENABLED),
      projects: optional(PROJECTS),
    },
    'An automation to create.',
  ),
)

export const AUTOMATION_CHANGE: NamedShape<AutomationChange> = named(
  'AutomationChange',
  object(
    {
      name: optional(NAME),
      inputs: optional(INPUTS),
      trigger: optional(described(AUTOMATION_TRIGGER, TRIGGER_WORDS)),
      enabled: optional(ENABLED),
      projects: optional(PROJECTS),
    },
    'Members to change. `inputs` replaces all inputs; a secret with the value `******` keeps its value.',
  ),
)

export const AUTOMATION: NamedShape<Automation> = named(
  'Automation',
  object(
    {
      id: described(RESOURCE_ID, 'Names the automation.'),
      name: NAME,
      functionId: described(FUNCTION_ID, 'The function that runs.'),
      modelId: described(RESOURCE_ID, 'The model on whose versions it runs.'),
      inputs: INPUTS,
      trigger: described(AUTOMATION_TRIGGER, TRIGGER_WORDS),
      enabled: ENABLED,
      projects: PROJECTS,
      createdAt: described(TIME, 'The time of creation.'),
      updatedAt: described(TIME, 'The time of the last change.'),
    },
    'A function that runs on the versions of a model, with inputs.',
  ),
)

export const RUN_START: NamedShape<RunStart> = named(
  'RunStart',
  object(
    {
      versionId: optional(described(RESOURCE_ID, 'The latest one by default.')),
      external: optional(
        boolean(
          'The caller runs the function on a machine of their own. The answer holds the token with which it reports. `false` by default.',
        ),
      ),
    },
    'The version to run on, and who runs the function.',
  ),
)

export const AUTOMATION_SHAPES: readonly NamedShape<unknown>[] = [
  AUTOMATION_TRIGGER,
  NEW_AUTOMATION,
  AUTOMATION_CHANGE,
  AUTOMATION,
  pageOf(AUTOMATION),
  RUN_START,
]
