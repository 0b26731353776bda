import { INPUTS_LIMITS } from '../../../automation/author/inputs/description.ts'
import { JSON_SCHEMA_DIALECT, type InputsSchema } from '../../../automation/author/inputs/schema.ts'
import type { JsonObject } from '../../../automation/author/json.ts'
import {
  boolean,
  described,
  list,
  named,
  type NamedShape,
  object,
  sent,
  type Shape,
  text,
  wrong,
} from '../../../openapi/description/shape.ts'
import type { Schema } from '../../../openapi/description/types.ts'
import type { FunctionInfo, InputsIssue, InputsToValidate, InputsValidity } from '../wire-types.ts'
import { COUNT, FUNCTION_ID, jsonObject, pageOf } from './common.ts'

/** Functions and their inputs. */

const TEXT: Schema = { type: 'string' }

/** Inputs as they are given and shown. */
export const INPUTS: Shape<JsonObject> = jsonObject(
  INPUTS_LIMITS.schemaBytesMax,
  `The inputs that the schema of the function describes, at most ${INPUTS_LIMITS.schemaBytesMax} bytes of JSON. Secrets are written and never read: each is shown as \`******\`.`,
)

const INPUT_SCHEMA: NamedShape<unknown> = named(
  'InputSchema',
  sent({
    type: 'object',
    required: ['type'],
    additionalProperties: false,
    properties: {
      type: { type: 'string', enum: ['string', 'number', 'integer', 'boolean'] },
      title: TEXT,
      description: TEXT,
      default: { description: 'The default value. Secrets have none.' },
      minLength: COUNT.schema,
      maxLength: COUNT.schema,
      pattern: TEXT,
      exclusiveMinimum: { type: 'number' },
      minimum: { type: 'number' },
      exclusiveMaximum: { type: 'number' },
      maximum: { type: 'number' },
      enum: { type: 'array', minItems: 1, items: TEXT, description: 'Choices that are their own labels.' },
      oneOf: {
        type: 'array',
        minItems: 1,
        items: object({ const: text(), title: text() }, 'A choice and its label.').schema,
        description: 'Choices with labels.',
      },
      format: { type: 'string', const: 'password', description: 'A secret.' },
      writeOnly: { type: 'boolean', const: true },
    },
    description: 'One input.',
  }),
)

const INPUTS_SCHEMA: NamedShape<InputsSchema> = named(
  'InputsSchema',
  sent({
    type: 'object',
    required: ['$schema', 'type', 'properties', 'required', 'additionalProperties'],
    additionalProperties: false,
    properties: {
      $schema: { type: 'string', const: JSON_SCHEMA_DIALECT },
      type: { type: 'string', const: 'object' },
      title: TEXT,
      description: TEXT,
      properties: { type: 'object', additionalProperties: INPUT_SCHEMA.schema },
      required: { type: 'array', items: TEXT },
      additionalProperties: { type: 'boolean', const: false },
    },
    description:
      'The inputs of a function as JSON Schema, draft 2020-12: one flat object, so that a form can be made from it. Everything is inline; optional inputs are absent from `required`.',
  }),
)

const FUNCTION: NamedShape<FunctionInfo> = named(
  'Function',
  object(
    {
      id: described(FUNCTION_ID, 'Names the function.'),
      name: text({ description: 'The name for people.' }),
      description: text({ description: 'The description for people; empty if there is none.' }),
      release: text({ description: 'The state of its code, such as `1.4.0` or a commit.' }),
      version: text({
        pattern: '^[0-9a-f]{32}$',
        description: 'Changes with the release and with the inputs: hex digits of a digest of both.',
      }),
      inputs: described(INPUTS_SCHEMA, 'The inputs as JSON Schema.'),
    },
    'A registered function. The operator of the server registers functions, never a client over HTTP, because a function is code.',
  ),
)

export const INPUTS_TO_VALIDATE: NamedShape<InputsToValidate> = named(
  'InputsToValidate',
  object(
    {
      inputs: {
        schema: { description: 'Any JSON that may be inputs of the function.' },
        read: (value: unknown, at: string): unknown => {
          if (value === undefined) throw wrong(at, 'any JSON value', 'missing')
          return value
        },
      },
    },
    'Inputs to validate.',
  ),
)

const INPUTS_ISSUE: NamedShape<InputsIssue> = named(
  'InputsIssue',
  object(
    {
      path: text({ description: 'The name of the input; empty for the whole.' }),
      message: text({ description: 'Continues the name of the input. It never holds a value.' }),
    },
    'One fault of inputs.',
  ),
)

const INPUTS_VALIDITY: NamedShape<InputsValidity> = named(
  'InputsValidity',
  object(
    { valid: boolean('Whether the function accepts the inputs.'), issues: list(INPUTS_ISSUE) },
    'Whether the function accepts the inputs, and the faults.',
  ),
)

export const FUNCTION_SHAPES: readonly NamedShape<unknown>[] = [
  INPUT_SCHEMA,
  INPUTS_SCHEMA,
  FUNCTION,
  pageOf(FUNCTION),
  INPUTS_TO_VALIDATE,
  INPUTS_ISSUE,
  INPUTS_VALIDITY,
]
