import { gzipSync } from 'node:zlib'
import { BLOCKS_MEDIA_TYPE } from '../../src/blocks/ready-blocks.ts'
import type { Parameter } from '../../src/openapi/description/types.ts'
import { filePart, multipartUpload } from '../contract/sides.ts'
import type { Answered, Sent } from '../mounts/ask.ts'
import { bodyOf, inBlocks } from '../support/ready-blocks.ts'
import { bodyText, type Conformance, type Found } from './conformance.ts'

/** One request of the document's examples. */
export interface ExampleRequest {
  readonly name: string
  readonly sent: Sent
}

/** Every parameter of an operation, those of its path among them. */
export function parametersOf(conformance: Conformance, { template, operation }: Found): Parameter[] {
  const all = [...(conformance.document.paths[template].parameters ?? []), ...(operation.parameters ?? [])]
  return all.map((one) => conformance.resolve<Parameter>(one))
}

/** The path of the examples' project and object, or of others. */
export function examplePath(
  conformance: Conformance,
  found: Found,
  values: Readonly<Record<string, string>> = {},
): string {
  return parametersOf(conformance, found)
    .filter((one) => one.in === 'path')
    .reduce(
      (path, { name, examples }) =>
        path.replace(`{${name}}`, encodeURIComponent(values[name] ?? String(firstValue(examples)))),
      found.template,
    )
}

/**
 * Each example of the body, or the request without a body; then the same with one optional parameter after the other.
 */
export function exampleRequests(conformance: Conformance, found: Found): ExampleRequest[] {
  const method = found.method.toUpperCase()
  const path = examplePath(conformance, found)
  const content = Object.entries(found.operation.requestBody?.content ?? {})
  const others = parametersOf(conformance, found).filter((one) => one.in !== 'path')
  const needed = others.filter((one) => one.required === true)
  const bare: ExampleRequest[] =
    content.length === 0
      ? [{ name: 'root', sent: { method, path } }]
      : content.flatMap(([type, { examples = {} }]) =>
          Object.entries(examples).map(([name, { value }]) => ({
            name,
            sent: { method, path, ...encoded(type, value) },
          })),
        )
  const plain = bare.map(({ name, sent }) => ({
    name,
    sent: needed.reduce((whole, parameter) => withParameter(whole, parameter, firstValue(parameter.examples)), sent),
  }))
  const optional = others.filter((one) => one.required !== true)
  return [
    ...plain,
    ...optional.flatMap((parameter) =>
      Object.entries(parameter.examples ?? {}).map(([name, { value }]) => ({
        name: `${parameter.name}: ${name}`,
        sent: withParameter(plain[0].sent, parameter, value),
      })),
    ),
  ]
}

export function withParameter(sent: Sent, parameter: Pick<Parameter, 'name' | 'in'>, value: unknown): Sent {
  if (parameter.in === 'header')
    return { ...sent, headers: { ...sent.headers, [parameter.name.toLowerCase()]: String(value) } }
  const pairs = (Array.isArray(value) ? value : [value]).map(
    (one) => `${parameter.name}=${encodeURIComponent(String(one))}`,
  )
  return { ...sent, path: `${sent.path}${sent.path.includes('?') ? '&' : '?'}${pairs.join('&')}` }
}

/** A value of the document as the bytes that its media type makes of it. */
export function encoded(type: string, value: unknown): Pick<Sent, 'headers' | 'body'> {
  if (type === 'multipart/form-data') {
    const { body, headers } = multipartUpload(
      (value as { readonly file: readonly string[] }).file.map((text) => filePart(text, 'application/json')),
    )
    return { headers: Object.fromEntries(new Headers(headers)), body: body as Uint8Array }
  }
  const headers = { 'content-type': type }
  if (type === 'application/octet-stream') return { headers, body: Buffer.from(String(value)) }
  if (type === 'application/gzip') return { headers, body: gzipSync(JSON.stringify(value)) }
  if (type === BLOCKS_MEDIA_TYPE)
    return { headers, body: bodyOf(inBlocks((value as readonly object[]).map((object) => JSON.stringify(object)))) }
  if (type === 'application/x-www-form-urlencoded')
    return { headers, body: formText(value as Readonly<Record<string, unknown>>) }
  return { headers, body: JSON.stringify(value) }
}

/** What the document shows as the answer to the example of this name; `undefined` where it shows none. */
export function exampleAnswer(
  conformance: Conformance,
  found: Found,
  name: string,
  { status, headers, body }: Answered,
): { readonly shown: unknown; readonly given: unknown } | undefined {
  const type = (headers['content-type'] ?? '').split(';')[0]
  const example = conformance.response(found, status).content?.[type]?.examples?.[name]
  if (example === undefined) return undefined
  const text = bodyText(headers, body)
  return { shown: example.value, given: type === 'application/json' ? JSON.parse(text) : text }
}

function formText(value: Readonly<Record<string, unknown>>): string {
  return new URLSearchParams(
    Object.entries(value).map(
      ([name, one]) => [name, typeof one === 'string' ? one : JSON.stringify(one)] as [string, string],
    ),
  ).toString()
}

function firstValue(examples: Parameter['examples']): unknown {
  return Object.values(examples ?? {})[0]?.value
}
