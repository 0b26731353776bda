import { headersOf, schemaRef } from '../../../openapi/description/shared.ts'
import type { Parameter, Paths, Tag } from '../../../openapi/description/types.ts'
import { WALL_ID } from '../../../openapi/objects/examples.ts'
import { PENDING_RUN } from './automations.ts'
import { ANNOTATION, AUTOMATION_ID, EVENTS, LOG_LINE, MODEL_ID, pageOf, RUN, RUN_ID, VERSION_ID } from './examples.ts'
import { jsonAnswer, operationOf, pathOf, PROJECT, WRITE_FAULTS } from './parts.ts'
import { RESOURCE_ID } from '../shapes/common.ts'

const TAG = 'Runs'
const NO_RUN = { 404: `there is no run "${'0'.repeat(32)}" in this project` }
const { result: _result, cause: _cause, ...LISTED_RUN } = RUN

function filter(name: string, schema: Parameter['schema'], value: string): Parameter {
  return {
    name,
    in: 'query',
    description: `Only those of this ${name.replace(/Id$/, '')}.`,
    schema,
    examples: { one: { value } },
  }
}

const listRuns = operationOf({
  operationId: 'listRuns',
  tag: TAG,
  right: 'read',
  summary: 'The runs of a project',
  description:
    'The newest first. Where few of many runs fit, a part may be short, or empty, before the end of the list.',
  parameters: ['Limit', 'Cursor'],
  ownParameters: [
    filter('automationId', RESOURCE_ID.schema, AUTOMATION_ID),
    filter('modelId', RESOURCE_ID.schema, MODEL_ID),
    filter('versionId', RESOURCE_ID.schema, VERSION_ID),
    filter('status', schemaRef('RunStatus'), 'succeeded'),
  ],
  answers: { 200: jsonAnswer('RunPage', 'A part of the list.', { all: { value: pageOf(LISTED_RUN) } }) },
  faults: [],
})

const getRun = operationOf({
  operationId: 'getRun',
  tag: TAG,
  right: 'read',
  summary: 'One run',
  description: 'With the result of the function.',
  answers: { 200: jsonAnswer('RunDetails', 'The run as it is at the moment.', { one: { value: RUN } }) },
  faults: ['not_found'],
  messages: NO_RUN,
})

const listAnnotations = operationOf({
  operationId: 'listAnnotations',
  tag: TAG,
  right: 'read',
  summary: 'Annotations of a run',
  description: 'In the order in which it was reported.',
  parameters: ['Limit', 'AnnotationCursor'],
  ownParameters: [
    filter('level', { type: 'string', enum: ['SUCCESS', 'INFO', 'WARNING', 'ERROR'] }, 'ERROR'),
    filter('category', { type: 'string' }, ANNOTATION.category),
    filter('objectId', schemaRef('ObjectId'), WALL_ID),
  ],
  answers: { 200: jsonAnswer('AnnotationPage', 'A part of the list.', { all: { value: pageOf(ANNOTATION) } }) },
  faults: ['not_found'],
  messages: NO_RUN,
})

const listLogs = operationOf({
  operationId: 'listLogs',
  tag: TAG,
  right: 'read',
  summary: 'The log of a run',
  description: 'In the order of arrival, without secrets and tokens.',
  parameters: ['Limit', 'LogCursor'],
  answers: { 200: jsonAnswer('LogPage', 'A part of the log.', { all: { value: pageOf(LOG_LINE) } }) },
  faults: ['not_found'],
  messages: NO_RUN,
})

const LAST_EVENT_ID: Parameter = {
  name: 'Last-Event-ID',
  in: 'header',
  description: 'The id of the last event that was seen, after a connection broke.',
  schema: { type: 'string', pattern: '^\\d{1,15}\\.\\d{1,10}$' },
  examples: { beginning: { value: '0.0' } },
}

const followRun = operationOf({
  operationId: 'followRun',
  tag: TAG,
  right: 'read',
  summary: 'What happens to a run, as it happens',
  description: [
    'Server-sent events: first the current state of the run, then every change. `status` has a status and its message, `progress` the member `progress` of the run, `annotations` the number of annotations of each level, `outputs` the versions and artifacts so far, `log` a line.',
    'A slow reader receives fewer and later states, and every line. After 15 seconds without an event the server sends a comment. The stream ends after the final status; a client that reconnects then with the last id receives 204.',
  ].join('\n\n'),
  ownParameters: [LAST_EVENT_ID],
  answers: {
    200: {
      description: 'The events.',
      headers: headersOf(['Cache-Control', 'X-Accel-Buffering']),
      content: {
        'text/event-stream': {
          schema: schemaRef('RunEvents'),
          examples: { one: { summary: 'A run that has ended', value: EVENTS.join('') } },
          'x-events': {
            status: schemaRef('StatusEvent'),
            progress: schemaRef('RunProgress'),
            annotations: schemaRef('AnnotationCounts'),
            outputs: schemaRef('OutputsEvent'),
            log: schemaRef('LogLine'),
          },
        },
      },
    },
    204: {
      description: 'The run has ended, and everything was seen: there is nothing to come back for.',
      headers: headersOf(['Cache-Control']),
    },
  },
  faults: ['not_found'],
  messages: { ...NO_RUN, 503: '200 streams of events are open; that is the most' },
})

const cancelRun = operationOf({
  operationId: 'cancelRun',
  tag: TAG,
  right: 'write',
  summary: 'Cancel a run',
  description:
    'From then on nothing more from it is accepted, and its runner is notified. Canceling twice has no further effect.',
  answers: { 200: jsonAnswer('Run', 'The run, canceled.', {}) },
  faults: ['not_found', 'conflict', ...WRITE_FAULTS],
  messages: { ...NO_RUN, 409: 'the run has ended (succeeded), so it cannot be canceled' },
})

const rerunRun = operationOf({
  operationId: 'rerunRun',
  tag: TAG,
  right: 'write',
  summary: 'Run again',
  description: 'The same function on the same version with the same inputs, as a new run.',
  answers: {
    201: jsonAnswer('Run', 'The new run.', {
      one: { value: { ...PENDING_RUN, triggeredBy: { kind: 'rerun', runId: RUN_ID } } },
    }),
  },
  faults: ['not_found', 'conflict', 'too_many_runs', ...WRITE_FAULTS],
  messages: { ...NO_RUN, 409: 'the run is running; cancel it, or wait for its end, before it is run again' },
})

export const RUN_TAG: Tag = {
  name: TAG,
  description:
    'One run is one function on one version. It ends in exactly one status, and leaves annotations, a log, versions and files.',
}

export const RUN_PATHS: Paths = {
  [`${PROJECT}/runs`]: pathOf([], { get: listRuns }),
  [`${PROJECT}/runs/{runId}`]: pathOf(['RunId'], { get: getRun }),
  [`${PROJECT}/runs/{runId}/annotations`]: pathOf(['RunId'], { get: listAnnotations }),
  [`${PROJECT}/runs/{runId}/logs`]: pathOf(['RunId'], { get: listLogs }),
  [`${PROJECT}/runs/{runId}/events`]: pathOf(['RunId'], { get: followRun }),
  [`${PROJECT}/runs/{runId}/cancel`]: pathOf(['RunId'], { post: cancelRun }),
  [`${PROJECT}/runs/{runId}/rerun`]: pathOf(['RunId'], { post: rerunRun }),
}
