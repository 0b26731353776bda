import type { Paths, Tag } from '../../../openapi/description/types.ts'
import { FUNCTION, GIVEN_INPUTS, pageOf } from './examples.ts'
import { jsonAnswer, jsonBody, operationOf, pathOf, PROJECT } from './parts.ts'

const TAG = 'Functions'
const NO_FUNCTION = { 404: 'no function "nobody" is registered' }

const listFunctions = operationOf({
  operationId: 'listFunctions',
  tag: TAG,
  right: 'read',
  summary: 'What can be run',
  description: 'All functions of the server, in the order of their ids; every project has the same.',
  parameters: ['Limit', 'FunctionCursor'],
  answers: { 200: jsonAnswer('FunctionPage', 'A part of the list.', { all: { value: pageOf(FUNCTION) } }) },
  faults: [],
})

const getFunction = operationOf({
  operationId: 'getFunction',
  tag: TAG,
  right: 'read',
  summary: 'One function',
  description: 'With the schema of its inputs, from which a form can be made.',
  answers: { 200: jsonAnswer('Function', 'The function.', { one: { value: FUNCTION } }) },
  faults: ['not_found'],
  messages: NO_FUNCTION,
})

const validateInputs = operationOf({
  operationId: 'validateInputs',
  tag: TAG,
  right: 'read',
  summary: 'Whether a function takes inputs',
  description: 'Keeps nothing. Inputs that the function does not take are an answer, not an error.',
  body: jsonBody('InputsToValidate', 'The inputs.', {
    good: { value: { inputs: GIVEN_INPUTS } },
    bad: {
      summary: 'A number that is too large, a choice that is missing, a name that there is not',
      value: { inputs: { tolerance: 100, apiKey: 'k-4711', colour: 'red' } },
    },
  }),
  answers: {
    200: jsonAnswer('InputsValidity', 'The faults of the inputs.', { good: { value: { valid: true, issues: [] } } }),
  },
  faults: ['not_found'],
  messages: NO_FUNCTION,
})

export const FUNCTION_TAG: Tag = { name: TAG, description: 'What the server can run on versions of models.' }

export const FUNCTION_PATHS: Paths = {
  [`${PROJECT}/functions`]: pathOf([], { get: listFunctions }),
  [`${PROJECT}/functions/{functionId}`]: pathOf(['FunctionId'], { get: getFunction }),
  [`${PROJECT}/functions/{functionId}/validate`]: pathOf(['FunctionId'], { post: validateInputs }),
}
