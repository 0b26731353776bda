import type { NamedShape } from '../../src/openapi/description/shape.ts'
import type { Schema } from '../../src/openapi/description/types.ts'

/** The TypeScript types of the shapes on the wire: one description makes the checks, the OpenAPI document and the types. */

const AUTHOR_FILE = 'src/automation/author/wire-types.ts'
const SERVER_FILE = 'src/automation-server/schemas/wire-types.ts'

/** What the author of a function uses too. */
const OF_AUTHORS: ReadonlySet<string> = new Set([
  'RunStatus',
  'AnnotationLevel',
  'LogLevel',
  'Annotation',
  'LogLine',
  'RunReport',
])

/** Types that have another name than the component of the document, since theirs is taken. */
const TYPE_NAMES: Readonly<Record<string, string>> = {
  Function: 'FunctionInfo',
  Artifact: 'RunArtifact',
  NewVersion: 'NewModelVersion',
  StatusEvent: 'RunStatusChange',
  OutputsEvent: 'RunOutputs',
  RunCauseCount: 'RunCauseCount',
}

/** Described by hand: what makes schemas of inputs has its own types, and pages are generic. */
const BY_HAND = /^(?:InputsSchema|InputSchema|RunEvents)$|Page$/

type Definitions = ReadonlyMap<string, Schema>

/** The text of each generated file, by its path. */
export function typesOf(shapes: readonly NamedShape<unknown>[]): Readonly<Record<string, string>> {
  const definitions: Definitions = new Map(shapes.map(({ name, definition }) => [name, definition]))
  const types = [...definitions].filter(([name, schema]) => !BY_HAND.test(name) && !isScalar(schema))
  const printed = (isOfAuthors: boolean): string =>
    types
      .filter(([name]) => OF_AUTHORS.has(name) === isOfAuthors)
      .map(([name, schema]) => declaration(name, schema, definitions))
      .join('\n')
  const notice = '/* Generated from the shapes in `src/automation-server/schemas/shapes`: run `npm run schemas`. */\n\n'
  const author = printed(true)
  const server = printed(false)
  return {
    [AUTHOR_FILE]: [importLine(['JsonObject'], './json.ts'), '', notice, author].join('\n'),
    [SERVER_FILE]: [
      importLine(['InputsSchema'], '../../automation/author/inputs/schema.ts'),
      importLine(['JsonObject'], '../../automation/author/json.ts'),
      importLine(
        [...OF_AUTHORS].filter((name) => new RegExp(`\\b${name}\\b`).test(server)),
        '../../automation/author/wire-types.ts',
      ),
      '',
      notice,
      server,
    ].join('\n'),
  }
}

function importLine(names: readonly string[], path: string): string {
  return `import type { ${names.join(', ')} } from '${path}'`
}

function declaration(name: string, schema: Schema, definitions: Definitions): string {
  const inner = nonNull(schema) ?? schema
  const doc = comment([inner.description, inner === schema ? undefined : schema.description].filter(Boolean).join(' '))
  const typeName = TYPE_NAMES[name] ?? name
  return inner.properties === undefined
    ? `${doc}export type ${typeName} = ${typeText(inner, definitions)}\n`
    : `${doc}export interface ${typeName} {\n${members(inner, definitions)}\n}\n`
}

function members({ properties = {}, required = [] }: Schema, definitions: Definitions): string {
  return Object.entries(properties)
    .map(([name, schema]) => {
      const mark = required.includes(name) ? '' : '?'
      return `${comment(schema.description ?? '')}readonly ${name}${mark}: ${typeText(schema, definitions)}`
    })
    .join('\n')
}

function typeText(schema: Schema, definitions: Definitions): string {
  if (schema.$ref !== undefined) return referenceText(schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1), definitions)
  const inner = nonNull(schema)
  if (inner !== undefined) return `${typeText(inner, definitions)} | null`
  if (schema.enum !== undefined) return schema.enum.map((value) => `'${value}'`).join(' | ')
  if (schema.type === 'integer' || schema.type === 'number') return 'number'
  if (schema.type === 'string' || schema.type === 'boolean') return schema.type
  if (schema.type === 'array') return `readonly (${typeText(schema.items ?? {}, definitions)})[]`
  if (schema.properties !== undefined) return `{ ${members(schema, definitions)} }`
  if (typeof schema.additionalProperties === 'object')
    return `{ readonly [name: string]: ${typeText(schema.additionalProperties, definitions)} }`
  return schema.type === 'object' ? 'JsonObject' : 'unknown'
}

function referenceText(name: string, definitions: Definitions): string {
  const schema = definitions.get(name)
  if (schema === undefined || isScalar(schema)) return 'string'
  return `${TYPE_NAMES[name] ?? name}${nonNull(schema) === undefined ? '' : ' | null'}`
}

/** A string under a name that only the document gives it. */
function isScalar({ type, enum: choices }: Schema): boolean {
  return type === 'string' && choices === undefined
}

/** The schema that is not null, where null is the only other choice. */
function nonNull({ oneOf }: Schema): Schema | undefined {
  return oneOf?.length === 2 && oneOf[1].type === 'null' ? oneOf[0] : undefined
}

/** Lines end before column 100, however deep the member stands. */
function comment(text: string): string {
  if (text === '') return ''
  const lines: string[] = ['']
  for (const word of text.split(' ')) {
    if (lines.at(-1) !== '' && `${lines.at(-1)} ${word}`.length > 100) lines.push('')
    lines[lines.length - 1] = `${lines.at(-1)} ${word}`.trim()
  }
  return lines.length === 1 ? `/** ${lines[0]} */\n` : `/**\n${lines.map((line) => ` * ${line}\n`).join('')} */\n`
}
