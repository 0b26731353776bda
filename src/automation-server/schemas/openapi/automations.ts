import { headersOf } from '../../../openapi/description/shared.ts'
import type { Paths, Tag } from '../../../openapi/description/types.ts'
import { AUTOMATION, GIVEN_INPUTS, pageOf, RUN, VERSION_ID } from './examples.ts'
import { jsonAnswer, jsonBody, operationOf, pathOf, PROJECT, WRITE_FAULTS } from './parts.ts'
import type { Run } from '../types.ts'

const TAG = 'Automations'
const NO_AUTOMATION = { 404: `there is no automation "${'0'.repeat(32)}" in this project` }
const MESSAGES = {
  ...NO_AUTOMATION,
  400: 'the inputs cannot be used: "tolerance" must be less than 100',
  501: 'the input "apiKey" is a secret, and this service has no key to keep secrets with; its operator sets one (secretKeys)',
}
const { name, functionId, modelId, trigger } = AUTOMATION
const { result: _result, cause: _cause, ...RUN_IN_LISTS } = RUN

/** A run that was just made. */
export const PENDING_RUN: Run = {
  ...RUN_IN_LISTS,
  status: 'pending',
  message: null,
  progress: null,
  createdVersions: [],
  artifacts: [],
  annotations: { SUCCESS: 0, INFO: 0, WARNING: 0, ERROR: 0 },
  triggeredBy: { kind: 'manual', runId: null },
  startedAt: null,
  endedAt: null,
}

const listAutomations = operationOf({
  operationId: 'listAutomations',
  tag: TAG,
  right: 'read',
  summary: 'The automations of a project',
  description: 'The oldest first.',
  parameters: ['Limit', 'Cursor'],
  answers: { 200: jsonAnswer('AutomationPage', 'A part of the list.', { all: { value: pageOf(AUTOMATION) } }) },
  faults: [],
})

const createAutomation = operationOf({
  operationId: 'createAutomation',
  tag: TAG,
  right: 'write',
  summary: 'Create an automation',
  description: 'Secrets among the inputs are kept sealed; a server without a key for that refuses them.',
  body: jsonBody('NewAutomation', 'The automation.', {
    versions: { value: { name, functionId, modelId, inputs: GIVEN_INPUTS, trigger } },
    manual: {
      value: {
        name: 'Check walls by hand',
        functionId,
        modelId,
        inputs: GIVEN_INPUTS,
        trigger: 'manual',
        enabled: false,
      },
    },
  }),
  answers: { 201: jsonAnswer('Automation', 'The automation as it is now.', { versions: { value: AUTOMATION } }) },
  faults: ['invalid_inputs', 'not_found', 'conflict', 'not_supported', ...WRITE_FAULTS],
  messages: {
    ...MESSAGES,
    404: 'no function "nobody" is registered',
    409: 'this project has 1000 automations; that is the most',
  },
})

const getAutomation = operationOf({
  operationId: 'getAutomation',
  tag: TAG,
  right: 'read',
  summary: 'One automation',
  description: 'Secrets among its inputs are `******`.',
  answers: { 200: jsonAnswer('Automation', 'The automation.', { one: { value: AUTOMATION } }) },
  faults: ['not_found'],
  messages: NO_AUTOMATION,
})

const changeAutomation = operationOf({
  operationId: 'changeAutomation',
  tag: TAG,
  right: 'write',
  summary: 'Change an automation',
  description: 'Runs that exist keep the inputs that they were made with.',
  body: jsonBody('AutomationChange', 'What changes; the rest stays.', {
    off: { summary: 'New versions start it no more', value: { enabled: false } },
    inputs: {
      summary: 'Other inputs, with the same secret',
      value: { inputs: { tolerance: 7, analysis: 'thermal', apiKey: '******' } },
    },
  }),
  answers: {
    200: jsonAnswer('Automation', 'The automation as it is now.', {
      off: { value: { ...AUTOMATION, enabled: false } },
    }),
  },
  faults: ['invalid_inputs', 'not_found', 'not_supported', ...WRITE_FAULTS],
  messages: MESSAGES,
})

const deleteAutomation = operationOf({
  operationId: 'deleteAutomation',
  tag: TAG,
  right: 'write',
  summary: 'Remove an automation',
  description: 'Its runs stay.',
  answers: { 204: { description: 'It is gone.', headers: headersOf(['Cache-Control']) } },
  faults: ['not_found', ...WRITE_FAULTS],
  messages: NO_AUTOMATION,
})

const startRun = operationOf({
  operationId: 'startRun',
  tag: TAG,
  right: 'write',
  summary: 'Run an automation by hand',
  description:
    'On one version of its model. The automation need not be enabled. If its queue is full, the request is refused with `too_many_runs`; so is an external run while 20 others are active. An external run must read its status (`askLease`) at intervals: after a minute of silence it times out.',
  body: jsonBody(
    'RunStart',
    'On which version; without a body on the latest.',
    { latest: { value: {} }, version: { value: { versionId: VERSION_ID } }, external: { value: { external: true } } },
    false,
  ),
  answers: {
    201: jsonAnswer('StartedRun', 'The queued run, or an external run, which has begun.', {
      version: { value: PENDING_RUN },
    }),
  },
  faults: ['not_found', 'conflict', 'too_many_runs', ...WRITE_FAULTS],
  messages: { ...NO_AUTOMATION, 409: 'the model has no version yet; create one, then run the automation on it' },
})

export const AUTOMATION_TAG: Tag = {
  name: TAG,
  description:
    'A function that runs on the versions of a model, with inputs: on every new version, or by hand. A version that a run creates starts none of the automations that led to it.',
}

export const AUTOMATION_PATHS: Paths = {
  [`${PROJECT}/automations`]: pathOf([], { get: listAutomations, post: createAutomation }),
  [`${PROJECT}/automations/{automationId}`]: pathOf(['AutomationId'], {
    get: getAutomation,
    patch: changeAutomation,
    delete: deleteAutomation,
  }),
  [`${PROJECT}/automations/{automationId}/runs`]: pathOf(['AutomationId'], { post: startRun }),
}
