import type { Annotation, LogLine } from '../../automation/author/run-data.ts'
import { AUTOMATION } from '../../automation-server/schemas/shapes/automations.ts'
import { RESOURCE_ID } from '../../automation-server/schemas/shapes/common.ts'
import { MODEL, VERSION } from '../../automation-server/schemas/shapes/models.ts'
import { ANNOTATION, LOG_LINE } from '../../automation-server/schemas/shapes/reports.ts'
import { RUN_DETAILS } from '../../automation-server/schemas/shapes/runs.ts'
import type { Automation, Model, RunDetails, Version } from '../../automation-server/schemas/types.ts'
import {
  integer,
  isObject,
  list,
  object,
  optional,
  record,
  type Shape,
  text,
  wrong,
  found,
} from '../../openapi/description/shape.ts'

/** Annotations of a run, in the order in which they were reported. */
export interface AnnotationPart {
  readonly runId: string
  /** 0 for the first part of a run. */
  readonly part: number
  readonly items: readonly Annotation[]
}

/** Log lines of a run. */
export interface LogPart {
  readonly runId: string
  /** The number of the first line, from 0 on. */
  readonly firstLine: number
  readonly lines: readonly LogLine[]
}

/** An automation with its secrets, which only a server with the same key opens. */
export interface SealedAutomation extends Automation {
  readonly sealed?: Readonly<Record<string, string>>
}

/** A record of a project as it is imported. */
export type ImportedRecord =
  | { readonly kind: 'model'; readonly value: Model }
  | { readonly kind: 'version'; readonly value: Version }
  | { readonly kind: 'automation'; readonly value: SealedAutomation }
  | { readonly kind: 'annotations'; readonly value: AnnotationPart }
  | { readonly kind: 'logs'; readonly value: LogPart }
  | { readonly kind: 'run'; readonly value: RunDetails }

const RECORDS_MAX = 1_000
const ITEMS_MAX = 1_000
const NUMBER_MAX = 0xffff_ffff

const ANNOTATION_PART: Shape<AnnotationPart> = object(
  { runId: RESOURCE_ID, part: integer(0, NUMBER_MAX), items: list(ANNOTATION, { itemsMax: ITEMS_MAX }) },
  'Annotations of a run.',
)

const LOG_PART: Shape<LogPart> = object(
  { runId: RESOURCE_ID, firstLine: integer(0, NUMBER_MAX), lines: list(LOG_LINE, { itemsMax: ITEMS_MAX }) },
  'Log lines of a run.',
)

const SEALED = optional(record(text(), text(), 'Sealed secrets by the names of their inputs.'))

const SEALED_AUTOMATION: Shape<SealedAutomation> = {
  schema: AUTOMATION.schema,
  read: (value, at) => {
    if (!isObject(value)) return AUTOMATION.read(value, at)
    const { sealed, ...automation } = value
    const read = SEALED.read(sealed, `${at}.sealed`)
    return { ...AUTOMATION.read(automation, at), ...(read === undefined ? {} : { sealed: read }) }
  },
}

const VALUES: { readonly [K in ImportedRecord['kind']]: Shape<Extract<ImportedRecord, { kind: K }>['value']> } = {
  model: MODEL,
  version: VERSION,
  automation: SEALED_AUTOMATION,
  annotations: ANNOTATION_PART,
  logs: LOG_PART,
  run: RUN_DETAILS,
}

const RECORD: Shape<ImportedRecord> = {
  schema: { type: 'object' },
  read: (value, at) => {
    if (!isObject(value)) throw wrong(at, 'an object', found(value))
    const { kind } = value
    if (typeof kind !== 'string' || !Object.hasOwn(VALUES, kind))
      throw wrong(`${at}.kind`, `one of ${Object.keys(VALUES).join(', ')}`, found(kind))
    const read = VALUES[kind as ImportedRecord['kind']].read(value.value, `${at}.value`)
    return { kind, value: read } as ImportedRecord
  },
}

/** Records to import, in the order in which they are taken. */
export const IMPORTED_RECORDS: Shape<readonly ImportedRecord[]> = list(RECORD, { itemsMax: RECORDS_MAX })
