import type { Paths, Tag } from '../../../openapi/description/types.ts'
import { ROOT_ID } from '../../../openapi/objects/examples.ts'
import { DELETED_MODEL, DELETED_VERSION, MODEL, NEW_MODEL, pageOf, RUN_VERSION, VERSION } from './examples.ts'
import { jsonAnswer, jsonBody, operationOf, pathOf, PROJECT, WRITE_FAULTS } from './parts.ts'

const TAG = 'Models'
const NO_MODEL = { 404: `there is no model "${'0'.repeat(32)}" in this project` }

const NO_VERSION = { 404: `there is no version "${'0'.repeat(32)}" in this project` }
const RETENTION = { keepLastCount: 20, keepDailyDays: 90 }
const MODEL_DELETED = `the model "${MODEL.id}" is deleted; restore it first`

const listModels = operationOf({
  operationId: 'listModels',
  tag: TAG,
  right: 'read',
  summary: 'The models of a project',
  description: 'The oldest first. A project without models has an empty list.',
  parameters: ['Limit', 'Cursor', 'Deleted'],
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
  description: 'With the id of its latest version. Deleted models are answered until the grace ends.',
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
  parameters: ['Limit', 'Cursor', 'Deleted'],
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
  description: 'What it holds never changes.',
  answers: { 200: jsonAnswer('Version', 'The version.', { version: { value: VERSION } }) },
  faults: ['not_found'],
  messages: NO_VERSION,
})

const changeModel = operationOf({
  operationId: 'changeModel',
  tag: TAG,
  right: 'write',
  summary: 'Change the name or the retention rule of a model',
  description: 'What is not named stays.',
  body: jsonBody('ModelChange', 'What changes.', {
    rename: { value: { name: 'Town hall' } },
    retention: { value: { retention: RETENTION } },
  }),
  answers: {
    200: jsonAnswer('Model', 'The model as it is now.', {
      rename: { value: { ...MODEL, name: 'Town hall' } },
      retention: { value: { ...MODEL, retention: RETENTION } },
    }),
  },
  faults: ['not_found', 'conflict', ...WRITE_FAULTS],
  messages: { ...NO_MODEL, 409: MODEL_DELETED },
})

const deleteModel = operationOf({
  operationId: 'deleteModel',
  tag: TAG,
  right: 'write',
  summary: 'Delete a model',
  description:
    'The model disappears from lists and accepts no versions, and its automations no longer start. It can be restored for a period that the server sets (14 days by default); then it is removed with its versions and automations. Its runs stay. Deleting twice has no further effect.',
  answers: { 200: jsonAnswer('Model', 'The deleted model.', { deleted: { value: DELETED_MODEL } }) },
  faults: ['not_found', ...WRITE_FAULTS],
  messages: NO_MODEL,
})

const restoreModel = operationOf({
  operationId: 'restoreModel',
  tag: TAG,
  right: 'write',
  summary: 'Restore a deleted model',
  description:
    'Answers 404 once the grace has ended and the model is removed. A model that is not deleted stays as it is.',
  answers: { 200: jsonAnswer('Model', 'The model as it is now.', { house: { value: MODEL } }) },
  faults: ['not_found', ...WRITE_FAULTS],
  messages: NO_MODEL,
})

const pruneModel = operationOf({
  operationId: 'pruneModel',
  tag: TAG,
  right: 'write',
  summary: 'Delete the versions that a retention rule does not keep',
  description:
    'With the rule of the model, or with one that is sent. At most 1,000 versions are deleted, the newest first; `hasMore` tells whether more are to be. They can be restored like any deleted version. The server does the same once a day for every model with a rule.',
  body: jsonBody(
    'PruneRequest',
    'The rule.',
    { rule: { value: { dryRun: true, retention: { keepLastCount: 1 } } } },
    false,
  ),
  answers: { 200: jsonAnswer('PruneResult', 'What was deleted, or would be.', {}) },
  faults: ['not_found', 'conflict', ...WRITE_FAULTS],
  messages: { ...NO_MODEL, 409: 'the model has no retention rule; set one, or send one in the request' },
})

const changeVersion = operationOf({
  operationId: 'changeVersion',
  tag: TAG,
  right: 'write',
  summary: 'Keep a version, or no longer',
  description: 'No retention rule deletes a version with `kept`.',
  body: jsonBody('VersionChange', 'What changes.', { version: { value: { kept: true } } }),
  answers: {
    200: jsonAnswer('Version', 'The version as it is now.', { version: { value: { ...VERSION, kept: true } } }),
  },
  faults: ['not_found', ...WRITE_FAULTS],
  messages: NO_VERSION,
})

const deleteVersion = operationOf({
  operationId: 'deleteVersion',
  tag: TAG,
  right: 'write',
  summary: 'Delete a version',
  description:
    'The version disappears from lists. It can be restored for a period that the server sets (14 days by default). Its runs stay. Deleting twice has no further effect.',
  answers: { 200: jsonAnswer('Version', 'The deleted version.', { deleted: { value: DELETED_VERSION } }) },
  faults: ['not_found', 'conflict', ...WRITE_FAULTS],
  messages: { ...NO_VERSION, 409: MODEL_DELETED },
})

const restoreVersion = operationOf({
  operationId: 'restoreVersion',
  tag: TAG,
  right: 'write',
  summary: 'Restore a deleted version',
  description:
    'Answers 404 once the period for restoring has ended and the version is removed. A version that a retention rule deleted comes back with `kept`, because the rule would delete it again.',
  answers: { 200: jsonAnswer('Version', 'The version as it is now.', { version: { value: VERSION } }) },
  faults: ['not_found', 'conflict', ...WRITE_FAULTS],
  messages: { ...NO_VERSION, 409: MODEL_DELETED },
})

export const MODEL_TAG: Tag = {
  name: TAG,
  description:
    'Named lines of versions. A version is the graph of objects below its root; without one it is unknown which objects are still needed.',
}

export const MODEL_PATHS: Paths = {
  [`${PROJECT}/models`]: pathOf([], { get: listModels, post: createModel }),
  [`${PROJECT}/models/{modelId}`]: pathOf(['ModelId'], { get: getModel, patch: changeModel, delete: deleteModel }),
  [`${PROJECT}/models/{modelId}/prune`]: pathOf(['ModelId'], { post: pruneModel }),
  [`${PROJECT}/models/{modelId}/restore`]: pathOf(['ModelId'], { post: restoreModel }),
  [`${PROJECT}/models/{modelId}/versions`]: pathOf(['ModelId'], { get: listVersions, post: createVersion }),
  [`${PROJECT}/models/{modelId}/versions/{versionId}`]: pathOf(['ModelId', 'VersionId'], {
    get: getVersion,
    patch: changeVersion,
    delete: deleteVersion,
  }),
  [`${PROJECT}/models/{modelId}/versions/{versionId}/restore`]: pathOf(['ModelId', 'VersionId'], {
    post: restoreVersion,
  }),
}
