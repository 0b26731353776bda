import { Registry } from 'prom-client'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { ARCHIVES_AREA } from '../../src/archive/server/openapi.ts'
import { AUTOMATION_AREA } from '../../src/automation-server/schemas/openapi/area.ts'
import { EXIT } from '../../src/cli/common/exit.ts'
import { allCommands, commandTree } from '../../src/cli/completion/command-tree.ts'
import { createProgram } from '../../src/cli/program.ts'
import { ERROR_STATUS } from '../../src/errors.ts'
import { createObjectService, openAccess } from '../../src/index.ts'
import { createMetrics } from '../../src/metrics/index.ts'
import { openApiDocument } from '../../src/openapi/document.ts'
import { archiveLines } from './archive-names.ts'
import type { OpenApiDocument, Operation, Parameter, Schema } from '../../src/openapi/description/types.ts'

/*
 * What docs/versioning.md promises beside the TypeScript API, one promise a line. `npm run api` compares the lines with `docs/api/interfaces.api.md`.
 * A line that begins with `must` is a duty of the client: there, a new line breaks clients. Of all others, a line that goes breaks them.
 */

const METHODS = ['get', 'head', 'options', 'post', 'put', 'patch', 'delete'] as const
const DUTY = 'must '

/** Every promise, in a fixed order. */
export async function stableNames(): Promise<readonly string[]> {
  const lines = [
    ...Object.entries(ERROR_STATUS).map(([code, status]) => `error ${code} ${status}`),
    ...Object.entries(EXIT).map(([meaning, code]) => `exit ${code} ${meaning}`),
    ...httpLines(openApiDocument({ server: '/', areas: [AUTOMATION_AREA, ARCHIVES_AREA] })),
    ...archiveLines(),
    ...(await commandLines()),
    ...(await metricLines()),
  ]
  return [...new Set(lines)].sort()
}

/** The promises that a change breaks, one sentence each. */
export function brokenPromises(before: readonly string[], after: readonly string[]): string[] {
  const [was, is] = [new Set(before), new Set(after)]
  const gone = before.filter((line) => !is.has(line) && !line.startsWith(DUTY))
  // Something new may have duties of its own.
  const isOfSomethingOld = (line: string): boolean => {
    const [subject] = line.slice(DUTY.length).split(/ (?:query|header|body) |\.(?=\w+$)/)
    return before.some((one) => one === subject || one.startsWith(`${subject} `) || one.startsWith(`${subject}.`))
  }
  const duties = after.filter((line) => line.startsWith(DUTY) && !was.has(line) && isOfSomethingOld(line))
  return [
    ...gone.map((line) => `gone: ${line}`),
    ...duties.map((line) => `asked of clients: ${line.slice(DUTY.length)}`),
  ]
}

function httpLines(document: OpenApiDocument): string[] {
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = item[method]
      if (operation === undefined) return []
      const parameters = [...(item.parameters ?? []), ...(operation.parameters ?? [])].map((one) =>
        resolved<Parameter>(document, one),
      )
      return operationLines(`http ${method.toUpperCase()} ${path}`, operation, parameters)
    }),
  )
  const { schemas = {} } = document.components
  const asked = schemasOfRequests(document)
  const members = Object.entries(schemas).flatMap(([name, { properties = {}, required = [] }]) =>
    Object.entries(properties).flatMap(([member, schema]) => [
      `schema ${name}.${member} ${kindOf(schema)}`,
      ...(asked.has(name) && required.includes(member) ? [`${DUTY}schema ${name}.${member}`] : []),
    ]),
  )
  return [...operations, ...members]
}

function operationLines(
  subject: string,
  { requestBody, responses }: Operation,
  parameters: readonly Parameter[],
): string[] {
  const ofQuery = parameters.filter((one) => one.in !== 'path')
  return [
    subject,
    ...ofQuery.flatMap(({ name, in: place, schema, required = false }) => [
      `${subject} ${place} ${name} ${kindOf(schema)}`,
      ...(required ? [`${DUTY}${subject} ${place} ${name}`] : []),
    ]),
    ...Object.entries(requestBody?.content ?? {}).map(
      ([type, { schema }]) => `${subject} body ${type} ${kindOf(schema ?? {})}`,
    ),
    ...(requestBody?.required === true ? [`${DUTY}${subject} body content`] : []),
    ...Object.entries(responses).flatMap(([status, response]) =>
      '$ref' in response || response.content === undefined
        ? [`${subject} answers ${status}`]
        : Object.entries(response.content).map(
            ([type, { schema }]) => `${subject} answers ${status} ${type} ${kindOf(schema ?? {})}`,
          ),
    ),
  ]
}

/** The schemas that bodies of requests consist of. */
function schemasOfRequests(document: OpenApiDocument): ReadonlySet<string> {
  const found = new Set<string>()
  const visit = (part: unknown): void => {
    for (const [, name] of JSON.stringify(part ?? {}).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      if (found.has(name)) continue
      found.add(name)
      visit(document.components.schemas?.[name])
    }
  }
  for (const item of Object.values(document.paths)) for (const method of METHODS) visit(item[method]?.requestBody)
  return found
}

/** A schema by its name, or by its type. */
function kindOf(schema: Schema): string {
  const { $ref, type, items, oneOf, anyOf, enum: choices } = schema
  if ($ref !== undefined) return $ref.slice($ref.lastIndexOf('/') + 1)
  const alternatives = oneOf ?? anyOf
  if (alternatives !== undefined) return alternatives.map(kindOf).join('|')
  if (choices !== undefined) return choices.join('|')
  if (type === 'array') return `${kindOf(items ?? {})}[]`
  return type ?? 'any'
}

function resolved<T extends object>(document: OpenApiDocument, thing: T | { readonly $ref: string }): T {
  if (!('$ref' in thing)) return thing
  return thing.$ref
    .slice(2)
    .split('/')
    .reduce<unknown>((value, key) => (value as Readonly<Record<string, unknown>>)[key], document) as T
}

async function commandLines(): Promise<string[]> {
  const program = await createProgram()
  const variables = [program, ...program.commands.flatMap((one) => [one, ...one.commands])].flatMap(({ options }) =>
    options.flatMap(({ envVar }) => (envVar === undefined ? [] : [`environment ${envVar}`])),
  )
  const commands = allCommands(commandTree(program)).filter(({ name }) => name !== 'help')
  const options = commands.flatMap(({ path, options: own }) => [
    `command ${path}`,
    ...own.flatMap(({ flags, values }) =>
      flags.map((flag) => `command ${path} ${flag}${values === undefined ? '' : ' <value>'}`),
    ),
  ])
  return [...variables, ...options]
}

async function metricLines(): Promise<string[]> {
  const registry = new Registry()
  const service = createObjectService({ backend: memoryBackend(), access: openAccess() })
  createMetrics({ registry, service })
  // The client library keeps the names of labels in a member that its types do not have.
  const metrics = registry.getMetricsAsArray() as unknown as readonly {
    readonly name: string
    readonly labelNames?: readonly string[]
  }[]
  await service.close()
  return metrics.map(({ name, labelNames = [] }) => `metric ${name}{${labelNames.join(',')}}`)
}
