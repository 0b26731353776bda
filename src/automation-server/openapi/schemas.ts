import { INPUTS_LIMITS } from '../../automation/inputs/description.ts'
import { JSON_SCHEMA_DIALECT } from '../../automation/inputs/schema.ts'
import { schemaRef } from '../../openapi/shared.ts'
import type { Schema } from '../../openapi/types.ts'
import { MESSAGE_CHARACTERS_MAX, NAME_CHARACTERS_MAX } from '../domain/checks.ts'

/** Models, versions, functions and automations as the interface shows them, and what creates and changes them. */

type Members = Readonly<Record<string, Schema>>

/** An object of these members and no others, all of them there but for the optional ones. */
export function objectOf(properties: Members, description: string, optional: readonly string[] = []): Schema {
  return {
    type: 'object',
    required: Object.keys(properties).filter((name) => !optional.includes(name)),
    additionalProperties: false,
    properties,
    description,
  }
}

export function nullable(schema: Schema, description: string): Schema {
  return { oneOf: [schema, { type: 'null' }], description }
}

/** A part of a list of such things. */
export function pageSchema(name: string): Schema {
  return objectOf(
    {
      items: { type: 'array', maxItems: 1_000, items: schemaRef(name) },
      cursor: nullable(
        { type: 'string' },
        'What `cursor` takes for the next part; `null` at the end. A part may be short, or empty, before the end.',
      ),
    },
    'A part of a list.',
  )
}

export const TEXT: Schema = { type: 'string' }
export const COUNT: Schema = { type: 'integer', minimum: 0 }
export const TIME: Schema = schemaRef('Time')
export const RESOURCE_ID: Schema = schemaRef('ResourceId')

const NAME: Schema = {
  type: 'string',
  minLength: 1,
  maxLength: NAME_CHARACTERS_MAX,
  pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]*$',
  description: 'One line.',
}
const MESSAGE: Schema = {
  type: 'string',
  maxLength: MESSAGE_CHARACTERS_MAX,
  description: 'For people; it may have lines.',
}
const TRIGGER: Schema = {
  type: 'string',
  enum: ['version', 'manual'],
  description: '`version` starts it with every new version of the model as well, `manual` only by hand.',
}
const ENABLED: Schema = {
  type: 'boolean',
  description: 'Whether new versions start it. By hand it starts either way. `true` by default.',
}
const FUNCTION_ID: Schema = schemaRef('FunctionId')
const INPUTS: Schema = {
  type: 'object',
  description: `What the schema of the function describes, ${INPUTS_LIMITS.schemaBytesMax} bytes of JSON at most. Secrets are written and never read: each is shown as \`******\`.`,
}

const NEW_VERSION: Members = { rootObjectId: schemaRef('ObjectId'), message: MESSAGE }

export const SCHEMAS: Members = {
  Time: {
    type: 'string',
    pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$',
    description: 'A time as ISO 8601 has it, in UTC, with milliseconds.',
  },
  ResourceId: {
    type: 'string',
    pattern: '^[0-9a-f]{32}$',
    description: 'Made by the server: 32 hex digits that sort by age.',
  },
  FunctionId: {
    type: 'string',
    pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$',
    description: 'Names a function, as who registered it chose.',
  },
  NewModel: objectOf({ name: NAME }, 'A model to create.'),
  Model: objectOf(
    {
      id: RESOURCE_ID,
      name: NAME,
      createdAt: TIME,
      versionCount: COUNT,
      latestVersionId: nullable(RESOURCE_ID, '`null` before the first version.'),
    },
    'A named line of versions.',
  ),
  ModelPage: pageSchema('Model'),
  NewVersion: objectOf(
    { ...NEW_VERSION, source: nullable(NAME, 'What made it, such as the name of an application.') },
    'A version to create. Everything below its root must have been uploaded before.',
    ['source'],
  ),
  Version: objectOf(
    {
      id: RESOURCE_ID,
      modelId: RESOURCE_ID,
      ...NEW_VERSION,
      source: nullable(NAME, 'What made it; `null` where nobody said.'),
      runId: nullable(RESOURCE_ID, 'The run that made it; `null` for versions that people and applications made.'),
      createdAt: TIME,
    },
    'A state of a model: the graph below one object.',
  ),
  VersionPage: pageSchema('Version'),
  NewRunVersion: objectOf({ modelId: RESOURCE_ID, ...NEW_VERSION }, 'A version that a run creates.'),
  InputsSchema: {
    type: 'object',
    required: ['$schema', 'type', 'properties', 'required', 'additionalProperties'],
    additionalProperties: false,
    properties: {
      $schema: { type: 'string', const: JSON_SCHEMA_DIALECT },
      type: { type: 'string', const: 'object' },
      title: TEXT,
      description: TEXT,
      properties: { type: 'object', additionalProperties: schemaRef('InputSchema') },
      required: { type: 'array', items: TEXT },
      additionalProperties: { type: 'boolean', const: false },
    },
    description:
      'The inputs of a function as JSON Schema, draft 2020-12: one flat object, so that a form can be made from it. Everything is inline; what is optional is absent from `required`.',
  },
  InputSchema: {
    type: 'object',
    required: ['type'],
    additionalProperties: false,
    properties: {
      type: { type: 'string', enum: ['string', 'number', 'integer', 'boolean'] },
      title: TEXT,
      description: TEXT,
      default: { description: 'What is taken where nothing is given. Secrets have none.' },
      minLength: COUNT,
      maxLength: COUNT,
      pattern: TEXT,
      exclusiveMinimum: { type: 'number' },
      minimum: { type: 'number' },
      exclusiveMaximum: { type: 'number' },
      maximum: { type: 'number' },
      enum: { type: 'array', minItems: 1, items: TEXT, description: 'Choices that are their own labels.' },
      oneOf: {
        type: 'array',
        minItems: 1,
        items: objectOf({ const: TEXT, title: TEXT }, 'A choice and its label.'),
        description: 'Choices with labels.',
      },
      format: { type: 'string', const: 'password', description: 'A secret.' },
      writeOnly: { type: 'boolean', const: true },
    },
    description: 'One input.',
  },
  Function: objectOf(
    {
      id: FUNCTION_ID,
      name: TEXT,
      description: TEXT,
      release: { type: 'string', description: 'The state of its code, such as `1.4.0` or a commit.' },
      version: {
        type: 'string',
        pattern: '^[0-9a-f]{32}$',
        description: 'Changes with the release and with the inputs.',
      },
      inputs: schemaRef('InputsSchema'),
    },
    'What can be run. Functions are registered by who runs the server, never over HTTP, since a function is code.',
  ),
  FunctionPage: pageSchema('Function'),
  InputsToValidate: objectOf({ inputs: { description: 'What may be inputs of the function.' } }, 'Inputs to look at.'),
  InputsIssue: objectOf(
    {
      path: { type: 'string', description: 'The name of the input; empty for the whole.' },
      message: { type: 'string', description: 'Reads on from the name. It never holds a value.' },
    },
    'One thing that is wrong with inputs.',
  ),
  InputsValidity: objectOf(
    { valid: { type: 'boolean' }, issues: { type: 'array', items: schemaRef('InputsIssue') } },
    'Whether the function takes the inputs, and why not.',
  ),
  NewAutomation: objectOf(
    { name: NAME, functionId: FUNCTION_ID, modelId: RESOURCE_ID, inputs: INPUTS, trigger: TRIGGER, enabled: ENABLED },
    'An automation to create.',
    ['enabled'],
  ),
  AutomationChange: objectOf(
    { name: NAME, inputs: INPUTS, trigger: TRIGGER, enabled: ENABLED },
    'What to change. Inputs are given whole; a secret that is given as it is shown stays.',
    ['name', 'inputs', 'trigger', 'enabled'],
  ),
  Automation: objectOf(
    {
      id: RESOURCE_ID,
      name: NAME,
      functionId: FUNCTION_ID,
      modelId: RESOURCE_ID,
      inputs: INPUTS,
      trigger: TRIGGER,
      enabled: ENABLED,
      createdAt: TIME,
      updatedAt: TIME,
    },
    'A function that runs on the versions of a model, with inputs.',
  ),
  AutomationPage: pageSchema('Automation'),
}
