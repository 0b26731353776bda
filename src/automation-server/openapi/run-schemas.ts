import { RUN_STATUS_RANK } from '../../automation/run-data.ts'
import { schemaRef } from '../../openapi/shared.ts'
import type { Schema } from '../../openapi/types.ts'
import { MESSAGE_CHARACTERS_MAX, NAME_CHARACTERS_MAX } from '../domain/checks.ts'
import { NO_ANNOTATIONS } from '../domain/run-record.ts'
import { COUNT, nullable, objectOf, pageSchema, RESOURCE_ID, TEXT, TIME } from './schemas.ts'

/** Runs, what they report and what is kept of it. */

const LEVELS = Object.keys(NO_ANNOTATIONS)
const FRACTION: Schema = { type: 'number', minimum: 0, maximum: 1, description: 'How much is done.' }
const METADATA: Schema = { type: 'object', description: 'What the function adds; 128 KiB at most.' }
const OBJECT_APP_IDS: Schema = {
  type: 'object',
  propertyNames: schemaRef('ObjectId'),
  additionalProperties: nullable(TEXT, 'The id that the application gave the object; `null` where it gave none.'),
  description: 'The objects, by their ids.',
}
const LOG_MEMBERS = {
  atMs: { type: 'number', minimum: 0, description: 'Milliseconds since 1970, as the clock of the run has it.' },
  level: { type: 'string', enum: ['debug', 'info', 'warn', 'error'] },
  message: TEXT,
} as const

const RUN_MEMBERS: Readonly<Record<string, Schema>> = {
  id: RESOURCE_ID,
  automationId: RESOURCE_ID,
  functionId: schemaRef('FunctionId'),
  functionVersion: nullable(
    TEXT,
    'The version of the function that runs; `null` for a run that waits for a server that has the function.',
  ),
  modelId: RESOURCE_ID,
  versionId: RESOURCE_ID,
  status: schemaRef('RunStatus'),
  message: nullable(TEXT, 'What the function, or the server, says of the status.'),
  progress: schemaRef('RunProgress'),
  createdVersions: { type: 'array', items: schemaRef('CreatedVersion') },
  artifacts: { type: 'array', items: schemaRef('Artifact') },
  annotations: schemaRef('AnnotationCounts'),
  triggeredBy: objectOf(
    {
      kind: { type: 'string', enum: ['version', 'manual', 'rerun'] },
      runId: nullable(RESOURCE_ID, 'With `rerun`: the run that was run again.'),
    },
    'What started it.',
  ),
  logsTruncated: {
    type: 'boolean',
    description: 'Whether log lines were left out because the run had reached the limit for them.',
  },
  createdAt: TIME,
  startedAt: nullable(TIME, '`null` before it is taken up.'),
  endedAt: nullable(TIME, '`null` before its end.'),
}

export const RUN_SCHEMAS: Readonly<Record<string, Schema>> = {
  RunStatus: {
    type: 'string',
    enum: Object.keys(RUN_STATUS_RANK),
    description:
      'Statuses rank `pending` 0, `initializing` 1, `running` 2, `succeeded` and `failed` 3, `canceled` 4, `exception` and `timeout` 5; only a higher rank follows, and from 3 on a run has ended. `failed` is what the function found, `exception` what went wrong.',
  },
  RunProgress: nullable(
    objectOf({ fraction: FRACTION, message: nullable(TEXT, 'What is being done.') }, 'How far a run is.'),
    '`null` where the function said nothing of it.',
  ),
  CreatedVersion: objectOf({ modelId: RESOURCE_ID, versionId: RESOURCE_ID }, 'A version that the run made.'),
  Artifact: objectOf({ id: RESOURCE_ID, name: TEXT, sizeBytes: COUNT }, 'A file that the run stored.'),
  AnnotationCounts: objectOf(
    Object.fromEntries(LEVELS.map((level) => [level, COUNT])),
    'How many annotations there are of each level.',
  ),
  Run: objectOf(RUN_MEMBERS, 'One run of an automation.'),
  RunDetails: objectOf(
    { ...RUN_MEMBERS, result: nullable({ type: 'object' }, 'What the function handed over with its mark.') },
    'A run that was asked for by its id.',
  ),
  RunPage: pageSchema('Run'),
  RunStart: objectOf({ versionId: RESOURCE_ID }, 'On which version. The latest one by default.', ['versionId']),
  Annotation: objectOf(
    {
      category: {
        type: 'string',
        minLength: 1,
        maxLength: NAME_CHARACTERS_MAX,
        pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]*$',
        description: 'Groups annotations that belong together, such as the name of a rule.',
      },
      level: { type: 'string', enum: LEVELS },
      objectAppIds: OBJECT_APP_IDS,
      message: nullable({ type: 'string', maxLength: MESSAGE_CHARACTERS_MAX }, 'What it says of the objects.'),
      metadata: nullable(METADATA, 'What the function adds.'),
    },
    'What a function says about objects of the model.',
  ),
  AnnotationPage: pageSchema('Annotation'),
  LogLine: objectOf(LOG_MEMBERS, 'One line of the log.'),
  LogPage: pageSchema('LogLine'),
  RunReport: objectOf(
    {
      sequence: {
        type: 'integer',
        minimum: 1,
        maximum: Number.MAX_SAFE_INTEGER,
        description:
          '1, 2, 3 ... within a run. One that was taken already changes nothing, so that a report can be sent again.',
      },
      status: { type: 'string', enum: ['initializing', 'running', 'succeeded', 'failed', 'exception'] },
      message: { type: 'string', maxLength: MESSAGE_CHARACTERS_MAX, description: 'With a status.' },
      result: { type: 'object', description: 'With a final status: what the function hands over; 128 KiB at most.' },
      progress: objectOf(
        { fraction: FRACTION, message: { type: 'string', maxLength: NAME_CHARACTERS_MAX } },
        'How far the run is.',
        ['message'],
      ),
      results: {
        type: 'array',
        maxItems: 10_000,
        items: schemaRef('Annotation'),
        description: 'Added to those that were reported before.',
      },
      logs: { type: 'array', maxItems: 10_000, items: schemaRef('LogLine') },
    },
    'What a run tells. Parts that are absent say nothing.',
    ['status', 'message', 'result', 'progress', 'results', 'logs'],
  ),
  ReportTaken: objectOf({}, 'The report is kept.'),
  Lease: objectOf(
    {
      status: schemaRef('RunStatus'),
      canceled: { type: 'boolean', description: 'Whether the run is to stop, since nothing of it is taken any more.' },
    },
    'How the run stands.',
  ),
  CreatedId: objectOf({ id: RESOURCE_ID }, 'What was made.'),
  StatusEvent: objectOf(
    { status: schemaRef('RunStatus'), message: nullable(TEXT, 'What is said of it.') },
    'The event `status`.',
  ),
  OutputsEvent: objectOf(
    {
      createdVersions: { type: 'array', items: schemaRef('CreatedVersion') },
      artifacts: { type: 'array', items: schemaRef('Artifact') },
    },
    'The event `outputs`: all that there is by then.',
  ),
  RunEvents: {
    type: 'string',
    pattern:
      '^retry: \\d+\\n\\n(: alive\\n\\n|event: (log|progress|results|outputs|status)\\n(id: \\d+\\.\\d+\\n)?data: [^\\n]+\\n\\n)*$',
    description: 'Server-sent events (WHATWG HTML section 9.2). The data of each is JSON on one line.',
  },
}
