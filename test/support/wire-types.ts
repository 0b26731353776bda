import type { NamedShape } from '../../src/openapi/description/shape.ts'
import type { Schema } from '../../src/openapi/description/types.ts'

/** The TypeScript types of the shapes on the wire: one description makes the checks, the OpenAPI document and the types. */

const NOTICE =
  '/* Generated from the shapes of the wire (`src/openapi/description/shape.ts`): run `npm run schemas`. */'

interface TypesFile {
  readonly path: string
  /** The types that stand here; without names, all that stand nowhere else. */
  readonly names: readonly string[]
  /** Types that are described by hand, by the file that this one imports them from. */
  readonly imports: Readonly<Record<string, string>>
  /** The address of this file in the files after it. */
  readonly addresses: Readonly<Record<string, string>>
}

const OBJECT_FILE = 'src/object/wire-types.ts'
const CLIENT_FILE = 'src/client/resources/wire-types.ts'
const UPKEEP_FILE = 'src/object/upkeep-wire-types.ts'
const AUTHOR_FILE = 'src/automation/author/wire-types.ts'
const SERVER_FILE = 'src/automation-server/schemas/wire-types.ts'

/** Each file hands on the types of those before it that it is asked for. */
const FILES: readonly TypesFile[] = [
  {
    path: OBJECT_FILE,
    names: ['AssignedId', 'UploadSummary', 'ObjectDiffResponse', 'AttributeMask', 'ObjectStreamRequest'],
    imports: {},
    addresses: {},
  },
  {
    path: CLIENT_FILE,
    names: [
      'RunStatus',
      'RetentionRule',
      'Model',
      'ModelChange',
      'NewVersion',
      'Version',
      'PruneRequest',
      'PruneResult',
      'CreatedVersion',
      'Artifact',
      'AnnotationCounts',
      'RunProgress',
      'RunCause',
      'Run',
      'NewPin',
      'Pin',
      'ModelUsage',
      'RootUsage',
      'ProjectUsage',
    ],
    imports: {},
    addresses: {
      [AUTHOR_FILE]: '../../client/resources/wire-types.ts',
      [SERVER_FILE]: '../../client/resources/wire-types.ts',
    },
  },
  {
    path: UPKEEP_FILE,
    names: [
      'ObjectAmount',
      'CollectedAmount',
      'CollectRequest',
      'CollectionReport',
      'CollectionProgress',
      'UnreferencedObject',
      'CollectObjectsRequest',
      'ChosenReport',
      'CompactRequest',
      'DamagedPack',
      'CompactionReport',
      'CompactionProgress',
    ],
    imports: {},
    addresses: { [SERVER_FILE]: '../../object/upkeep-wire-types.ts' },
  },
  {
    path: AUTHOR_FILE,
    names: ['AnnotationLevel', 'LogLevel', 'Annotation', 'LogLine', 'RunReport'],
    imports: { JsonObject: './json.ts' },
    addresses: { [SERVER_FILE]: '../../automation/author/wire-types.ts' },
  },
  {
    path: SERVER_FILE,
    names: [],
    imports: {
      InputsSchema: '../../automation/author/inputs/schema.ts',
      JsonObject: '../../automation/author/json.ts',
    },
    addresses: {},
  },
]

/** A type that has all members of another one, and at least so many, extends it. */
const EXTENDED_MEMBERS_MIN = 8

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
  return Object.fromEntries(
    FILES.map((file) => {
      const own = types.filter(([name]) => fileOf(name) === file)
      const text = own.map(([name, schema]) => declaration(name, schema, definitions)).join('\n')
      return [file.path, [...importLines(file, text), '', NOTICE, '', text].join('\n')]
    }),
  )
}

function fileOf(name: string): TypesFile | undefined {
  return FILES.find(({ names }) => names.includes(name) || names.length === 0)
}

function importLines(file: TypesFile, text: string): string[] {
  const isUsed = (name: string): boolean => new RegExp(`(?:[:(=|<]|extends) *${name}\\b`).test(text)
  const sources = Object.entries(file.imports).map(([name, address]) => ({ names: [name], address }))
  for (const { names, addresses } of FILES)
    if (file.path in addresses) sources.push({ names: names.map(typeNameOf), address: addresses[file.path] })
  return sources.flatMap(({ names, address }) => {
    const used = names.filter(isUsed)
    return used.length === 0 ? [] : [`import type { ${used.join(', ')} } from '${address}'`]
  })
}

function typeNameOf(name: string): string {
  return TYPE_NAMES[name] ?? name
}

function declaration(name: string, schema: Schema, definitions: Definitions): string {
  const inner = nonNull(schema) ?? schema
  const doc = comment([inner.description, inner === schema ? undefined : schema.description].filter(Boolean).join(' '))
  if (inner.properties === undefined) return `${doc}export type ${typeNameOf(name)} = ${typeText(inner, definitions)}\n`
  const base = extendedBy(name, inner, definitions)
  const heading = base === undefined ? typeNameOf(name) : `${typeNameOf(name)} extends ${typeNameOf(base)}`
  return `${doc}export interface ${heading} {\n${members(without(inner, definitions.get(base ?? '')), definitions)}\n}\n`
}

/** The name of another type whose members are all members of this one. */
function extendedBy(name: string, schema: Schema, definitions: Definitions): string | undefined {
  const texts = memberTexts(schema)
  const isExtended = ([other, { properties = {} }]: readonly [string, Schema]): boolean =>
    other !== name &&
    Object.keys(properties).length >= EXTENDED_MEMBERS_MIN &&
    Object.keys(properties).length < texts.size &&
    [...memberTexts(definitions.get(other) ?? {})].every(([member, text]) => texts.get(member) === text)
  return [...definitions].find(isExtended)?.[0]
}

function memberTexts({ properties = {}, required = [] }: Schema): Map<string, string> {
  return new Map(
    Object.entries(properties).map(([name, schema]) => [name, JSON.stringify([required.includes(name), schema])]),
  )
}

function without(schema: Schema, base: Schema | undefined): Schema {
  const { properties: inherited = {} } = base ?? {}
  const own = Object.entries(schema.properties ?? {}).filter(([name]) => !(name in inherited))
  return { ...schema, properties: Object.fromEntries(own) }
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
  if (schema.oneOf !== undefined) return schema.oneOf.map((choice) => typeText(choice, definitions)).join(' | ')
  if (schema.properties !== undefined) return `{ ${members(schema, definitions)} }`
  if (typeof schema.additionalProperties === 'object')
    return `{ readonly [name: string]: ${typeText(schema.additionalProperties, definitions)} }`
  return schema.type === 'object' ? 'JsonObject' : 'unknown'
}

function referenceText(name: string, definitions: Definitions): string {
  const schema = definitions.get(name)
  if (schema === undefined || isScalar(schema)) return 'string'
  return `${typeNameOf(name)}${nonNull(schema) === undefined ? '' : ' | null'}`
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
