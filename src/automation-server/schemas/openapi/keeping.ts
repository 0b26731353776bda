import type { Paths, Tag } from '../../../openapi/description/types.ts'
import { headersOf } from '../../../openapi/description/shared.ts'
import { ROOT_ID } from '../../../openapi/objects/examples.ts'
import { EXAMPLE_TIME, PIN, PIN_ID } from './examples.ts'
import { jsonAnswer, jsonBody, operationOf, pathOf, PROJECT, WRITE_FAULTS } from './parts.ts'

const TAG = 'Keeping'
const DAY_MS = 86_400_000

const listPins = operationOf({
  operationId: 'listPins',
  tag: TAG,
  right: 'read',
  summary: 'The pins of a project',
  description: 'All of them, the oldest first. A pin whose end has come is gone.',
  answers: { 200: jsonAnswer('PinList', 'The pins.', { all: { value: { items: [PIN] } } }) },
  faults: [],
})

const createPin = operationOf({
  operationId: 'createPin',
  tag: TAG,
  right: 'write',
  summary: 'Pin an object',
  description:
    'A pin keeps an object and everything below it. The object must be held; objects below it may arrive later.',
  body: jsonBody('NewPin', 'The pin.', {
    released: { value: { rootObjectId: ROOT_ID, name: PIN.name, reason: PIN.reason } },
    month: { value: { rootObjectId: ROOT_ID, lifetimeMs: 30 * DAY_MS } },
    until: { value: { rootObjectId: ROOT_ID, endsAt: `${Number(EXAMPLE_TIME.slice(0, 4)) + 10}-01-01T00:00:00.000Z` } },
  }),
  answers: { 201: jsonAnswer('Pin', 'The new pin.', { released: { value: PIN } }) },
  faults: ['objects_missing', 'conflict', ...WRITE_FAULTS],
  messages: { 409: 'the object "unknown" is not held by this project' },
})

const deletePin = operationOf({
  operationId: 'deletePin',
  tag: TAG,
  right: 'write',
  summary: 'Remove a pin',
  description: 'What nothing else keeps may be collected from then on.',
  answers: { 204: { description: 'It is gone.', headers: headersOf(['Cache-Control']) } },
  faults: ['not_found', ...WRITE_FAULTS],
  messages: { 404: `there is no pin "${PIN_ID}" in this project` },
})

const getUsage = operationOf({
  operationId: 'getUsage',
  tag: TAG,
  right: 'read',
  summary: 'What a project holds',
  description:
    'Objects and bytes of JSON of the project, of each model, and of each version and pin, with those that nothing else holds. A project exists as soon as it has an object or a model. Counting a large project can take longer than a request may wait: the response is then 503 with `Retry-After`, and the counting continues.',
  answers: { 200: jsonAnswer('ProjectUsage', 'What it holds.', {}) },
  faults: ['not_found'],
  messages: { 404: 'there is no project "nobody": the service holds neither objects nor models of it' },
})

export const KEEPING_TAG: Tag = {
  name: TAG,
  description: 'Pins keep objects that no version refers to; usage reports the size of each version and pin.',
}

export const KEEPING_PATHS: Paths = {
  [`${PROJECT}/pins`]: pathOf([], { get: listPins, post: createPin }),
  [`${PROJECT}/pins/{pinId}`]: pathOf(['PinId'], { delete: deletePin }),
  [`${PROJECT}/usage`]: pathOf([], { get: getUsage }),
}
