import type { Paths, Tag } from '../../../openapi/description/types.ts'
import { ROOT_ID } from '../../../openapi/objects/examples.ts'
import { MODEL, NEW_MODEL, pageOf, RUN_VERSION, VERSION } from './examples.ts'
import { jsonAnswer, jsonBody, operationOf, pathOf, PROJECT, WRITE_FAULTS } from './parts.ts'

const TAG = 'Models'
const NO_MODEL = { 404: `there is no model "${'0'.repeat(32)}" in this project` }

const listModels = operationOf({
  operationId: 'listModels',
  tag: TAG,
  right: 'read',
  summary: 'The models of a project',
  description: 'The oldest first. A project without models has an empty list.',
  parameters: ['Limit', 'Cursor'],
  answers: { 200: jsonAnswer('ModelPage', 'A part of the list.', { all: { value: pageOf(MODEL) } }) },
  faults: [],
})

const createModel = operationOf({
  operationId: 'createModel',
  tag: TAG,
  right: 'write',
  summary: 'Create a model',
  description: 'Names need not be unique.',
  body: jsonBody('NewModel', 'The model.', { house: { value: { name: MODEL.name } } }),
  answers: { 201: jsonAnswer('Model', 'The model as it is now.', { house: { value: NEW_MODEL } }) },
  faults: WRITE_FAULTS,
})

const getModel = operationOf({
  operationId: 'getModel',
  tag: TAG,
  right: 'read',
  summary: 'One model',
  description: 'With the id of its latest version.',
  answers: { 200: jsonAnswer('Model', 'The model.', { house: { value: MODEL } }) },
  faults: ['not_found'],
  messages: NO_MODEL,
})

const listVersions = operationOf({
  operationId: 'listVersions',
  tag: TAG,
  right: 'read',
  summary: 'The versions of a model',
  description: 'The newest first.',
  parameters: ['Limit', 'Cursor'],
  answers: { 200: jsonAnswer('VersionPage', 'A part of the list.', { all: { value: pageOf(RUN_VERSION, VERSION) } }) },
  faults: ['not_found'],
  messages: NO_MODEL,
})

const createVersion = operationOf({
  operationId: 'createVersion',
  tag: TAG,
  right: 'write',
  summary: 'Create a version of a model',
  description:
    "Refused while the root, or anything below it, is not held by the project: upload first. Starts the automations that wait for versions of the model. With the token of a run, the version is known as that run's, and `Idempotency-Key` counts.",
  parameters: ['IdempotencyKey'],
  body: jsonBody('NewVersion', 'The version.', {
    version: { value: { rootObjectId: ROOT_ID, message: VERSION.message, source: VERSION.source } },
    sourceless: { value: { rootObjectId: ROOT_ID, message: '' } },
  }),
  answers: { 201: jsonAnswer('Version', 'The version as it is now.', { version: { value: VERSION } }) },
  faults: ['not_found', 'objects_missing', 'conflict', ...WRITE_FAULTS],
  messages: { ...NO_MODEL, 409: '2 objects below "root" are not held: "a", "b"; upload them, then create the version' },
})

const getVersion = operationOf({
  operationId: 'getVersion',
  tag: TAG,
  right: 'read',
  summary: 'One version',
  description: 'A version never changes.',
  answers: { 200: jsonAnswer('Version', 'The version.', { version: { value: VERSION } }) },
  faults: ['not_found'],
  messages: { 404: `there is no version "${'0'.repeat(32)}" in this project` },
})

export const MODEL_TAG: Tag = {
  name: TAG,
  description:
    'Named lines of versions. A version is the graph of objects below its root; without one it is unknown which objects are still needed.',
}

export const MODEL_PATHS: Paths = {
  [`${PROJECT}/models`]: pathOf([], { get: listModels, post: createModel }),
  [`${PROJECT}/models/{modelId}`]: pathOf(['ModelId'], { get: getModel }),
  [`${PROJECT}/models/{modelId}/versions`]: pathOf(['ModelId'], { get: listVersions, post: createVersion }),
  [`${PROJECT}/models/{modelId}/versions/{versionId}`]: pathOf(['ModelId', 'VersionId'], { get: getVersion }),
}
