import {
  boolean,
  described,
  list,
  named,
  type NamedShape,
  nullable,
  object,
  optional,
  oneOf,
  sent,
  text,
} from '../../../openapi/description/shape.ts'
import type {
  AnnotationCounts,
  CreatedVersion,
  Run,
  RunArtifact,
  RunCause,
  RunProgress,
} from '../../../client/resources/wire-types.ts'
import type { RunCauseCount, RunDetails, RunOutputs, RunStatusChange, StartedRun } from '../wire-types.ts'
import { COUNT, FUNCTION_ID, jsonObject, pageOf, PROJECT_ID, RESOURCE_ID, TIME } from './common.ts'
import { FINAL_RESULT_BYTES_MAX, FRACTION, RUN_STATUS } from './reports.ts'

/** Runs as everybody sees them. */

const CREATED_VERSION: NamedShape<CreatedVersion> = named(
  'CreatedVersion',
  object(
    { projectId: optional(PROJECT_ID), modelId: RESOURCE_ID, versionId: RESOURCE_ID },
    'A version that the run created. `projectId` is present if it is not the project of the run.',
  ),
)

const ARTIFACT: NamedShape<RunArtifact> = named(
  'Artifact',
  object({ id: RESOURCE_ID, name: text(), sizeBytes: COUNT }, 'A file that the run stored.'),
)

const ANNOTATION_COUNTS: NamedShape<AnnotationCounts> = named(
  'AnnotationCounts',
  object({ SUCCESS: COUNT, INFO: COUNT, WARNING: COUNT, ERROR: COUNT }, 'The number of annotations of each level.'),
)

const RUN_PROGRESS: NamedShape<RunProgress | null> = named(
  'RunProgress',
  nullable(
    object({ fraction: FRACTION, message: nullable(text(), 'The current step.') }, 'The progress of a run.'),
    '`null` if the function reported none.',
  ),
)

const RUN_CAUSE: NamedShape<RunCause> = named(
  'RunCause',
  object(
    {
      kind: oneOf(
        ['version', 'manual', 'rerun', 'external'],
        '`external`: a person runs the function on a machine of their own, and it reports here.',
      ),
      runId: nullable(RESOURCE_ID, 'With `rerun`: the run that was repeated.'),
    },
    'The cause of a run.',
  ),
)

const RUN_CAUSE_COUNT: NamedShape<RunCauseCount> = named(
  'RunCauseCount',
  object(
    {
      id: described(
        RESOURCE_ID,
        'The version that a person or an application created, or the run that a person started.',
      ),
      runs: described(COUNT, 'Runs that resulted from it.'),
      notStarted: described(COUNT, 'Runs that were not started, because `runsMax` had resulted from it.'),
      runsMax: described(COUNT, 'The most runs that may result from it.'),
    },
    'The first cause of a chain of runs, and the runs that resulted from it.',
  ),
)

const RUN_MEMBERS = {
  id: RESOURCE_ID,
  automationId: RESOURCE_ID,
  functionId: FUNCTION_ID,
  functionVersion: nullable(
    text(),
    'The version of the function that runs; `null` while no server with the function has claimed the run.',
  ),
  modelId: RESOURCE_ID,
  versionId: RESOURCE_ID,
  status: RUN_STATUS,
  message: nullable(text(), 'The message of the function, or of the server, about the status.'),
  progress: RUN_PROGRESS,
  createdVersions: list(CREATED_VERSION),
  artifacts: list(ARTIFACT),
  annotations: ANNOTATION_COUNTS,
  triggeredBy: RUN_CAUSE,
  logsTruncated: boolean('Whether log lines were left out because the run had reached the limit for them.'),
  createdAt: TIME,
  startedAt: nullable(TIME, '`null` until a server claims the run.'),
  endedAt: nullable(TIME, '`null` until the run ends.'),
}

const RUN: NamedShape<Run> = named('Run', object(RUN_MEMBERS, 'One run of an automation, as lists show it.'))

const STARTED_RUN: NamedShape<StartedRun> = named(
  'StartedRun',
  object(
    {
      ...RUN_MEMBERS,
      token: optional(described(text(), 'With `external`: the token of the run, with which the function reports.')),
    },
    'A run that was started by hand.',
  ),
)

export const RUN_DETAILS: NamedShape<RunDetails> = named(
  'RunDetails',
  object(
    {
      ...RUN_MEMBERS,
      result: nullable(
        described(jsonObject(FINAL_RESULT_BYTES_MAX, ''), 'Any JSON object.'),
        'The result that the function passed with its mark; `null` if there is none.',
      ),
      cause: RUN_CAUSE_COUNT,
    },
    'A run that was requested by its id.',
  ),
)

const STATUS_EVENT: NamedShape<RunStatusChange> = named(
  'StatusEvent',
  object({ status: RUN_STATUS, message: nullable(text(), 'About the status.') }, 'The event `status`.'),
)

const OUTPUTS_EVENT: NamedShape<RunOutputs> = named(
  'OutputsEvent',
  object(
    { createdVersions: list(CREATED_VERSION), artifacts: list(ARTIFACT) },
    'The event `outputs`: all outputs so far.',
  ),
)

const RUN_EVENTS: NamedShape<string> = named(
  'RunEvents',
  sent({
    type: 'string',
    pattern:
      '^retry: \\d+\\n\\n(: alive\\n\\n|event: (log|progress|annotations|outputs|status)\\n(id: \\d+\\.\\d+\\n)?data: [^\\n]+\\n\\n)*$',
    description: 'Server-sent events (WHATWG HTML section 9.2). The data of each is JSON on one line.',
  }),
)

export const RUN_SHAPES: readonly NamedShape<unknown>[] = [
  CREATED_VERSION,
  ARTIFACT,
  ANNOTATION_COUNTS,
  RUN_PROGRESS,
  RUN_CAUSE,
  RUN_CAUSE_COUNT,
  RUN,
  STARTED_RUN,
  pageOf(RUN),
  RUN_DETAILS,
  STATUS_EVENT,
  OUTPUTS_EVENT,
  RUN_EVENTS,
]
