import type {
  Annotation,
  AnnotationLevel,
  LogLevel,
  LogLine,
  RunReport,
} from '../../../automation/author/wire-types.ts'
import type { RunStatus } from '../../../client/resources/wire-types.ts'
import {
  boolean,
  described,
  integer,
  list,
  named,
  type NamedShape,
  nullable,
  number,
  object,
  oneOf,
  optional,
  record,
  type Shape,
  text,
} from '../../../openapi/description/shape.ts'
import type { CreatedId, Lease, ReportAccepted } from '../wire-types.ts'
import { checkShortMessage, NAME_CHARACTERS_MAX } from '../checks.ts'
import { jsonObject, LINES, messageText, nameText, OBJECT_ID, pageOf, RESOURCE_ID } from './common.ts'

/** The reports of a run. */

const ANNOTATIONS_IN_REPORT_MAX = 10_000
const LOG_LINES_IN_REPORT_MAX = 10_000
const METADATA_BYTES_MAX = 131_072
/** Bytes of JSON. */
export const FINAL_RESULT_BYTES_MAX = 131_072
const APPLICATION_ID_CHARACTERS_MAX = 512
const TIME_MS_MAX = 8.64e15

export const RUN_STATUS: NamedShape<RunStatus> = named(
  'RunStatus',
  oneOf(
    ['pending', 'initializing', 'running', 'succeeded', 'failed', 'canceled', 'exception', 'timeout'],
    'Statuses rank `pending` 0, `initializing` 1, `running` 2, `succeeded` and `failed` 3, `canceled` 4, `exception` and `timeout` 5. Only a higher rank may follow, and from rank 3 on a run has ended. `failed` is a finding of the function; `exception` is an unexpected error.',
  ),
)

/** From 0 to 1. */
export const FRACTION: Shape<number> = number(0, 1, 'The share that is done, from 0 to 1.')

export const ANNOTATION_LEVEL: NamedShape<AnnotationLevel> = named(
  'AnnotationLevel',
  oneOf(['SUCCESS', 'INFO', 'WARNING', 'ERROR'], 'The severity of an annotation.'),
)

const LOG_LEVEL: NamedShape<LogLevel> = named(
  'LogLevel',
  oneOf(['debug', 'info', 'warn', 'error'], "The severity of a line of a run's log."),
)

/** Cut if it is too long: applications choose these ids. */
const APPLICATION_ID: Shape<string> = {
  schema: { type: 'string' },
  read: (value, at) => text().read(value, at).slice(0, APPLICATION_ID_CHARACTERS_MAX),
}

export const ANNOTATION: NamedShape<Annotation> = named(
  'Annotation',
  object(
    {
      category: nameText('Groups annotations that belong together, such as the name of a rule.'),
      level: described(ANNOTATION_LEVEL, 'The severity.'),
      objectAppIds: record(
        OBJECT_ID,
        nullable(APPLICATION_ID, 'The id of the object in its application; `null` if it has none.'),
        'The objects: the id in the application of each, by the id of the object; `null` if it has none.',
      ),
      message: nullable(messageText('About the objects.'), 'The message about the objects.'),
      metadata: nullable(
        jsonObject(METADATA_BYTES_MAX, 'At most 128 KiB of JSON.'),
        'Further data from the function; at most 128 KiB of JSON.',
      ),
    },
    'An annotation: a statement of a function about objects of the model.',
  ),
)

export const LOG_LINE: NamedShape<LogLine> = named(
  'LogLine',
  object(
    {
      atMs: number(0, TIME_MS_MAX, 'Milliseconds since 1970, by the clock of the run.'),
      level: described(LOG_LEVEL, 'The severity.'),
      message: text({ description: 'The text of the line.' }),
    },
    "One line of a run's log.",
  ),
)

const SHORT_MESSAGE: Shape<string> = text({ maxLength: NAME_CHARACTERS_MAX, pattern: LINES }, checkShortMessage)

export const RUN_REPORT: NamedShape<RunReport> = named(
  'RunReport',
  object(
    {
      sequence: integer(
        1,
        Number.MAX_SAFE_INTEGER,
        '1, 2, 3 ... within a run. A report that was already accepted changes nothing, so a report can be sent again.',
      ),
      status: optional(oneOf(['initializing', 'running', 'succeeded', 'failed', 'exception'], 'The new status.')),
      message: optional(messageText('With a status.')),
      result: optional(
        jsonObject(
          FINAL_RESULT_BYTES_MAX,
          'With a final status: a result for people and programs that look at the run; at most 128 KiB of JSON.',
        ),
      ),
      progress: optional(object({ fraction: FRACTION, message: optional(SHORT_MESSAGE) }, 'The progress of the run.')),
      annotations: optional(
        list(ANNOTATION, { itemsMax: ANNOTATIONS_IN_REPORT_MAX, description: 'Added to those of earlier reports.' }),
      ),
      logs: optional(list(LOG_LINE, { itemsMax: LOG_LINES_IN_REPORT_MAX, description: 'Added to the log.' })),
    },
    'A report of a run. Absent members change nothing.',
  ),
)

const REPORT_ACCEPTED: NamedShape<ReportAccepted> = named('ReportAccepted', object({}, 'The report is stored.'))

const LEASE: NamedShape<Lease> = named(
  'Lease',
  object(
    {
      status: described(RUN_STATUS, 'The current status.'),
      canceled: boolean('Whether the run must stop, because nothing more from it is accepted.'),
    },
    'The state of the run.',
  ),
)

const CREATED_ID: NamedShape<CreatedId> = named(
  'CreatedId',
  object({ id: described(RESOURCE_ID, 'The id of the new resource.') }, 'A new resource.'),
)

export const REPORT_SHAPES: readonly NamedShape<unknown>[] = [
  RUN_STATUS,
  ANNOTATION_LEVEL,
  LOG_LEVEL,
  ANNOTATION,
  pageOf(ANNOTATION),
  LOG_LINE,
  { ...pageOf(LOG_LINE), name: 'LogPage' },
  RUN_REPORT,
  REPORT_ACCEPTED,
  LEASE,
  CREATED_ID,
]
