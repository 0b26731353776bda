import {
  ARTIFACTS_FOLDER,
  FORMAT,
  FORMAT_VERSION,
  MANIFEST,
  OBJECTS_FOLDER,
  OPENING,
  RECORDS_FOLDER,
  SOURCE,
} from '../../src/archive/format.ts'
import { RECORD_SHAPES } from '../../src/archive/server/record-shapes.ts'
import { manifestOf, sourceText } from '../../src/archive/write-archive.ts'
import type { Schema } from '../../src/openapi/description/types.ts'

/** What programs that read or write archives rely on: entries, kinds of records, and members, one a line. */
export function archiveLines(): string[] {
  const part = { name: '', bytes: 0, sha256: '', objects: 0 }
  const { parts, ...manifest } = manifestOf([part])
  const source: unknown = JSON.parse(sourceText({ project: '', cursor: null, runsListedAt: '', base: null }))
  return [
    `archive format ${FORMAT} version ${FORMAT_VERSION}`,
    ...[OPENING, `${RECORDS_FOLDER}*.ndjson.gz`, `${ARTIFACTS_FOLDER}<run>/<artifact>`].map(entryLine),
    ...[`${OBJECTS_FOLDER}*.txt.gz`, MANIFEST, SOURCE].map(entryLine),
    ...membersOf(OPENING, { format: FORMAT, version: FORMAT_VERSION }),
    ...membersOf(MANIFEST, { ...manifest, parts }),
    ...membersOf(`${MANIFEST} parts[]`, parts[0]),
    ...membersOf(SOURCE, source as object),
    ...membersOf('record artifact', { id: '', runId: '', name: '', sizeBytes: 0 }),
    // A mirror's mark is sent to a server, and in no archive.
    ...Object.entries(RECORD_SHAPES)
      .filter(([kind]) => kind !== 'mark')
      .flatMap(([kind, shape]) => membersOf(`record ${kind}`, definitionOf(shape).properties ?? {})),
  ]
}

function entryLine(name: string): string {
  return `archive entry ${name}`
}

function membersOf(subject: string, value: object): string[] {
  return Object.keys(value).map((member) => `archive ${subject} ${member}`)
}

function definitionOf(shape: { readonly schema: Schema; readonly definition?: Schema }): Schema {
  return shape.definition ?? shape.schema
}
