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
    {
      projectId: optional(described(PROJECT_ID, 'The project of the version, if it is not the project of the run.')),
      modelId: described(RESOURCE_ID, 'The model of the version.'),
      versionId: described(RESOURCE_ID, 'The version.'),
    },
    'A version that the run created. `projectId` is present if it is not the project of the run.',
  ),
)

const ARTIFACT: NamedShape<RunArtifact> = named(
  'Artifact',
  object(
    {
      id: described(RESOURCE_ID, 'Names the artifact.'),
      name: text({ description: 'The name of the file.' }),
      sizeBytes: described(COUNT, 'The size of the file.'),
    },
    'A file that the run stored.',
  ),
)

const ANNOTATION_COUNTS: NamedShape<AnnotationCounts> = named(
  'AnnotationCounts',
  object(
    {
      SUCCESS: described(COUNT, 'Annotations that confirm something.'),
      INFO: described(COUNT, 'Annotations that inform.'),
      WARNING: described(COUNT, 'Annotations that warn.'),
      ERROR: described(COUNT, 'Annotations that report errors.'),
    },
    'The number of annotations of each level.',
  ),
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

/** Parts of a run with retention times of their own. */
export const RUN_PARTS = ['annotations', 'logs', 'artifacts'] as const

const RUN_MEMBERS = {
  id: described(RESOURCE_ID, 'Names the run.'),
  automationId: described(RESOURCE_ID, 'The automation that the run belongs to.'),
  functionId: described(FUNCTION_ID, 'The function that runs.'),
  functionVersion: nullable(
    text(),
    'The version of the function that runs; `null` while no server with the function has claimed the run.',
  ),
  modelId: described(RESOURCE_ID, 'The model that the function runs on.'),
  versionId: described(RESOURCE_ID, 'The version that the function runs on.'),
  status: described(RUN_STATUS, 'The current status.'),
  message: nullable(text(), 'The message of the function, or of the server, about the status.'),
  progress: described(RUN_PROGRESS, 'The progress that the function reported last; `null` if it reported none.'),
  createdVersions: list(CREATED_VERSION, { description: 'The versions that the run created.' }),
  artifacts: list(ARTIFACT, { description: 'The files that the run stored.' }),
  annotations: described(ANNOTATION_COUNTS, 'The number of annotations of each level.'),
  triggeredBy: described(RUN_CAUSE, 'The cause of the run.'),
  logsTruncated: boolean('Whether log lines were left out because the run had reached the limit for them.'),
  expired: list(oneOf(RUN_PARTS), {
    description: 'The parts that are gone, since a retention time of the server has passed for them.',
  }),
  createdAt: described(TIME, 'The time of creation.'),
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
      cause: described(RUN_CAUSE_COUNT, 'The first cause of the chain of runs that this run belongs to.'),
    },
    'A run that was requested by its id.',
  ),
)

const STATUS_EVENT: NamedShape<RunStatusChange> = named(
  'StatusEvent',
  object(
    { status: described(RUN_STATUS, 'The new status.'), message: nullable(text(), 'The message about the status.') },
    'The event `status`.',
  ),
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
