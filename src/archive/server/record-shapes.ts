import type { Annotation, LogLine } from '../../automation/author/run-data.ts'
import { AUTOMATION } from '../../automation-server/schemas/shapes/automations.ts'
import { RESOURCE_ID } from '../../automation-server/schemas/shapes/common.ts'
import { PIN } from '../../automation-server/schemas/shapes/keeping.ts'
import { MODEL, VERSION } from '../../automation-server/schemas/shapes/models.ts'
import { ANNOTATION, LOG_LINE } from '../../automation-server/schemas/shapes/reports.ts'
import { RUN_DETAILS } from '../../automation-server/schemas/shapes/runs.ts'
import type { Automation, Model, Pin, RunDetails, Version } from '../../automation-server/schemas/types.ts'
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
import type { Schema } from '../../openapi/description/types.ts'

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

/** An automation with its secrets. */
export interface SealedAutomation extends Automation {
  /** Only a server with the same key opens them. */
  readonly sealed?: Readonly<Record<string, string>>
  /** As the importer opened them, by the names of their inputs. */
  readonly secrets?: Readonly<Record<string, string>>
}

/** How far a mirror of some source has come here. */
export interface MirrorMark {
  /** Names the source: hex digits. */
  readonly source: string
  /** The place from which the objects of the source continue. */
  readonly cursor: string
}

/** A record of a project as it is imported. */
export type ImportedRecord =
  | { readonly kind: 'pin'; readonly value: Pin }
  | { readonly kind: 'model'; readonly value: Model }
  | { readonly kind: 'version'; readonly value: Version }
  | { readonly kind: 'automation'; readonly value: SealedAutomation }
  | { readonly kind: 'annotations'; readonly value: AnnotationPart }
  | { readonly kind: 'logs'; readonly value: LogPart }
  | { readonly kind: 'run'; readonly value: RunDetails }
  | { readonly kind: 'mark'; readonly value: MirrorMark }

const RECORDS_MAX = 1_000
const ITEMS_MAX = 1_000
const NUMBER_MAX = 0xffff_ffff
const CURSOR_CHARACTERS_MAX = 128

const ANNOTATION_PART: Shape<AnnotationPart> = object(
  { runId: RESOURCE_ID, part: integer(0, NUMBER_MAX), items: list(ANNOTATION, { itemsMax: ITEMS_MAX }) },
  'Annotations of a run.',
)

const LOG_PART: Shape<LogPart> = object(
  { runId: RESOURCE_ID, firstLine: integer(0, NUMBER_MAX), lines: list(LOG_LINE, { itemsMax: ITEMS_MAX }) },
  'Log lines of a run.',
)

const SEALED = optional(record(text(), text(), 'Sealed secrets by the names of their inputs.'))
const SECRETS = optional(record(text(), text(), 'Secrets by the names of their inputs.'))

const SEALED_AUTOMATION: Shape<SealedAutomation> = {
  schema: { ...AUTOMATION.definition, properties: { ...AUTOMATION.definition.properties, sealed: SEALED.schema } },
  read: (value, at) => {
    if (!isObject(value)) return AUTOMATION.read(value, at)
    const { sealed, secrets, ...automation } = value
    const given = { sealed: SEALED.read(sealed, `${at}.sealed`), secrets: SECRETS.read(secrets, `${at}.secrets`) }
    return {
      ...AUTOMATION.read(automation, at),
      ...(given.sealed === undefined ? {} : { sealed: given.sealed }),
      ...(given.secrets === undefined ? {} : { secrets: given.secrets }),
    }
  },
}

const MARK: Shape<MirrorMark> = object(
  { source: RESOURCE_ID, cursor: text({ maxLength: CURSOR_CHARACTERS_MAX }, checkCursor) },
  'How far a mirror has come.',
)

/** The counts of a run's consequences stay with the server that started it. */
const RUN: Shape<RunDetails> = {
  schema: withoutCause(RUN_DETAILS.definition),
  read: (value, at) =>
    RUN_DETAILS.read(
      isObject(value) ? { ...value, cause: { id: value.id, runs: 0, notStarted: 0, runsMax: 0 } } : value,
      at,
    ),
}

/** The values of records, by their kind. */
export const RECORD_SHAPES: {
  readonly [K in ImportedRecord['kind']]: Shape<Extract<ImportedRecord, { kind: K }>['value']>
} = {
  pin: PIN,
  model: MODEL,
  version: VERSION,
  automation: SEALED_AUTOMATION,
  annotations: ANNOTATION_PART,
  logs: LOG_PART,
  run: RUN,
  mark: MARK,
}

const RECORD: Shape<ImportedRecord> = {
  schema: { type: 'object' },
  read: (value, at) => {
    if (!isObject(value)) throw wrong(at, 'an object', found(value))
    const { kind } = value
    if (typeof kind !== 'string' || !Object.hasOwn(RECORD_SHAPES, kind))
      throw wrong(`${at}.kind`, `one of ${Object.keys(RECORD_SHAPES).join(', ')}`, found(kind))
    const read = RECORD_SHAPES[kind as ImportedRecord['kind']].read(value.value, `${at}.value`)
    return { kind, value: read } as ImportedRecord
  },
}

/** Records to import, in the order in which they are taken. */
export const IMPORTED_RECORDS: Shape<readonly ImportedRecord[]> = list(RECORD, { itemsMax: RECORDS_MAX })

function withoutCause({ properties = {}, required = [], ...schema }: Schema): Schema {
  const { cause: _cause, ...others } = properties
  return { ...schema, required: required.filter((name) => name !== 'cause'), properties: others }
}

function checkCursor(cursor: string, at: string): void {
  if (cursor.length > CURSOR_CHARACTERS_MAX)
    throw wrong(at, `a text of at most ${CURSOR_CHARACTERS_MAX} characters`, `one of ${cursor.length}`)
}
