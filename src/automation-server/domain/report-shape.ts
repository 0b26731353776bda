import type { JsonObject, RunReport } from '../../automation/run-data.ts'
import { StowageError } from '../../errors.ts'
import { checkObjectId } from '../../object/id.ts'
import {
  integer,
  jsonObject,
  list,
  nullable,
  number,
  object,
  oneOf,
  optional,
  type Reader,
  record,
  text,
} from '../shape.ts'
import { checkMessage, checkName, NAME_CHARACTERS_MAX } from './checks.ts'

const RESULTS_IN_REPORT_MAX = 10_000
const LOG_LINES_IN_REPORT_MAX = 10_000
const METADATA_BYTES_MAX = 131_072
const FINAL_RESULT_BYTES_MAX = 131_072
const APPLICATION_ID_CHARACTERS_MAX = 512
const TIME_MS_MAX = 8.64e15

const message: Reader<string> = (value, at) => {
  const read = text(value, at)
  checkMessage(read, at)
  return read
}

const name: Reader<string> = (value, at) => {
  const read = text(value, at)
  checkName(read, at)
  return read
}

const shortMessage: Reader<string> = (value, at) => {
  const read = message(value, at)
  if (read.length <= NAME_CHARACTERS_MAX) return read
  throw new StowageError(
    'invalid_request',
    `${at} has ${read.length} characters; it must have ${NAME_CHARACTERS_MAX} at most`,
  )
}

const applicationId: Reader<string> = (value, at) => text(value, at).slice(0, APPLICATION_ID_CHARACTERS_MAX)
const metadata: Reader<JsonObject> = jsonObject(METADATA_BYTES_MAX)

/** Reads what claims to be a `RunReport`. Throws `invalid_request` and `invalid_id`. */
export const readReport: Reader<RunReport> = object({
  sequence: integer(1, Number.MAX_SAFE_INTEGER),
  status: optional(oneOf('initializing', 'running', 'succeeded', 'failed', 'exception')),
  message: optional(message),
  result: optional(jsonObject(FINAL_RESULT_BYTES_MAX)),
  progress: optional(object({ fraction: number(0, 1), message: optional(shortMessage) })),
  results: optional(
    list(
      object({
        category: name,
        level: oneOf('SUCCESS', 'INFO', 'WARNING', 'ERROR'),
        objectAppIds: record(nullable(applicationId), checkObjectId),
        message: nullable(message),
        metadata: nullable(metadata),
      }),
      RESULTS_IN_REPORT_MAX,
    ),
  ),
  logs: optional(
    list(
      object({ atMs: number(0, TIME_MS_MAX), level: oneOf('debug', 'info', 'warn', 'error'), message: text }),
      LOG_LINES_IN_REPORT_MAX,
    ),
  ),
})
