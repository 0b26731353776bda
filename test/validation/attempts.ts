import { gzipSync } from 'node:zlib'
import { BLOCKS_MEDIA_TYPE } from '../../src/blocks/ready-blocks.ts'
import type { Parameter } from '../../src/openapi/description/types.ts'
import type { Sent } from '../mounts/ask.ts'
import type { Conformance, Found } from '../openapi/conformance.ts'
import { encoded, parametersOf, withParameter } from '../openapi/requests.ts'
import { leastValue, type Place, placesOf, resolved } from './places.ts'
import { allowedValues, type BrokenValue, brokenValues } from './values.ts'

/** A request that differs from an example of the document in one place. */
export interface Attempt {
  readonly name: string
  readonly found: Found
  readonly sent: Sent
  /** The message of a refusal has one of these in it. */
  readonly named: readonly string[]
}

export interface Effort {
  /**
   * Of the values for one place of one operation, and of those that break one rule there. Other operations try the
   * others.
   */
  readonly valuesMax: number
  /** Random values for each place, beside those at the bounds of its schema. */
  readonly randomValues: number
  readonly seed: number
}

/** An example of an operation, in the parts that can be varied one by one. */
interface Example {
  readonly found: Found
  readonly values: ReadonlyMap<Parameter, unknown>
  readonly body: { readonly type: string; readonly value: unknown } | undefined
}

const CODINGS: ReadonlySet<unknown> = new Set(['gzip', 'x-gzip'])

/** Requests that follow the description of an operation. */
export function allowedAttempts(conformance: Conformance, found: Found, effort: Effort, turn: number): Attempt[] {
  return examplesOf(conformance, found).flatMap((example) => [
    attemptOf(example, 'as it is shown', []),
    ...placesOfExample(conformance, example).flatMap(({ where, place, vary }, at) =>
      some(allowedValues(place, effort.randomValues, effort.seed), effort.valuesMax, turn + at).flatMap((value) => {
        const varied = vary(value)
        return varied === undefined ? [] : [attemptOf(varied, `${where} is ${shown(value)}`, [])]
      }),
    ),
  ])
}

/** Requests that break one rule of the description of an operation. */
export function brokenAttempts(conformance: Conformance, found: Found, { valuesMax }: Effort, turn: number): Attempt[] {
  return examplesOf(conformance, found).flatMap((example) => [
    ...placesOfExample(conformance, example).flatMap(({ where, place, vary, names }, at) =>
      someOfEachRule(brokenValues(place), valuesMax, turn + at).flatMap((broken) => {
        const varied = vary(broken.value)
        const name = `${where} breaks the rule "${broken.rule}" with ${shown(broken.value)}`
        return varied === undefined ? [] : [attemptOf(varied, name, names(broken))]
      }),
    ),
    ...missingParts(example),
  ])
}

function someOfEachRule(values: readonly BrokenValue[], valuesMax: number, turn: number): BrokenValue[] {
  const rules = new Set(values.map(({ rule }) => rule))
  return [...rules].flatMap((one) =>
    some(
      values.filter(({ rule }) => rule === one),
      valuesMax,
      turn,
    ),
  )
}

/** At most so many of the values; with another turn, others. */
function some<T>(values: readonly T[], valuesMax: number, turn: number): T[] {
  if (values.length <= valuesMax) return [...values]
  return Array.from({ length: valuesMax }, (_, at) => values[(turn * valuesMax + at) % values.length])
}

/** Without a parameter or a body that must be there. */
function missingParts(example: Example): Attempt[] {
  const needed = [...example.values.keys()].filter((one) => one.in !== 'path' && one.required === true)
  const without = needed.map((parameter) => {
    const values = new Map([...example.values].filter(([one]) => one !== parameter))
    return attemptOf({ ...example, values }, `${parameter.name} is missing`, [parameter.name])
  })
  if (example.body === undefined || example.found.operation.requestBody?.required !== true) return without
  return [...without, attemptOf({ ...example, body: undefined }, 'the body is missing', ['body'])]
}

interface VariedPlace {
  readonly where: string
  readonly place: Place
  /** The example with another value in this place; `undefined` where no request can carry it. */
  readonly vary: (value: unknown) => Example | undefined
  readonly names: (broken: BrokenValue) => readonly string[]
}

function placesOfExample(conformance: Conformance, example: Example): VariedPlace[] {
  const { found, body } = example
  const content = body === undefined ? undefined : found.operation.requestBody?.content[body.type]
  const ofParameters = parametersOf(conformance, found).flatMap((parameter) => {
    const value = example.values.get(parameter) ?? leastValue(conformance, parameter.schema)
    return placesOf(conformance, parameter.schema, value).map((place): VariedPlace => ({
      where: `${parameter.in} ${parameter.name}`,
      place,
      vary: (other) => {
        const whole = place.put(other)
        if (parameter.name === 'Content-Encoding' && hasOwnCoding(body?.type)) return undefined
        const isKnown = other !== carried(parameter, other) && place.allows(carried(parameter, other))
        return isCarried(parameter, whole) && !isKnown
          ? { ...example, values: new Map([...example.values, [parameter, whole]]) }
          : undefined
      },
      names: () => wordsOf(parameter),
    }))
  })
  if (body === undefined || content?.schema === undefined) return ofParameters
  const ofBody = placesOf(conformance, resolved(conformance, content.schema), body.value).map((place): VariedPlace => ({
    where: `${body.type} ${place.at === '' ? 'body' : place.at}`,
    place,
    vary: (other) => {
      const whole = place.put(other)
      return isEncodable(body.type, whole) ? { ...example, body: { ...body, value: whole } } : undefined
    },
    names: ({ member }) => [...wordsFor(found, place), ...(member === undefined ? [] : [member])],
  }))
  return [...ofParameters, ...ofBody]
}

/** Each example of each kind of body, with those parameters that must be there. */
function examplesOf(conformance: Conformance, found: Found): Example[] {
  const needed = parametersOf(conformance, found).filter((one) => one.required === true)
  const values = new Map(needed.map((one) => [one, Object.values(one.examples ?? {})[0]?.value]))
  const content = Object.entries(found.operation.requestBody?.content ?? {})
  if (content.length === 0) return [{ found, values, body: undefined }]
  return content.flatMap(([type, { examples = {} }]) =>
    Object.values(examples).map(({ value }) => ({ found, values, body: { type, value } })),
  )
}

function attemptOf({ found, values, body }: Example, name: string, named: readonly string[]): Attempt {
  const path = [...values].reduce(
    (whole, [one, value]) =>
      one.in === 'path' ? whole.replace(`{${one.name}}`, () => encodeURIComponent(String(value))) : whole,
    found.template,
  )
  const bare: Sent = {
    method: found.method.toUpperCase(),
    path,
    ...(body === undefined ? {} : encoded(body.type, body.value)),
  }
  const sent = [...values]
    .filter(([one]) => one.in !== 'path')
    .reduce((whole, [one, value]) => withParameter(whole, one, value), bare)
  const isCompressed = CODINGS.has(sent.headers?.['content-encoding']) && sent.body !== undefined
  return {
    name: `${found.operation.operationId}: ${name}`,
    found,
    sent: isCompressed ? { ...sent, body: gzipSync(sent.body ?? '') } : sent,
    named,
  }
}

/** Whether a request can have the value there, and a server can tell it from others: a URL and a header carry text. */
function isCarried({ in: place, schema }: Parameter, value: unknown): boolean {
  if (Array.isArray(value)) return schema.type === 'array' && value.every((one) => typeof one === 'string')
  if (typeof value !== 'string' && typeof value !== 'number') return false
  if (schema.type === 'array') return false
  if (place === 'path') return value !== '' && value !== '.' && value !== '..'
  // Field values have no spaces around them.
  return place === 'query' || /^[!-~](?:[ -~]*[!-~])?$/.test(String(value))
}

/**
 * A description cannot say that two of the bodies of an upload are sent without a coding: one is compressed, the other
 * has parts.
 */
function hasOwnCoding(type: string | undefined): boolean {
  return type === 'application/gzip' || type === 'multipart/form-data' || type === BLOCKS_MEDIA_TYPE
}

/** What the server sees of a value, which is text where it is a part of a URL or a header. */
function carried({ schema }: Parameter, value: unknown): unknown {
  return schema.type === 'array' || schema.type === 'integer' ? value : String(value)
}

/** Whether the media type has a way to say the value. */
function isEncodable(type: string, value: unknown): boolean {
  if (type === 'application/json' || type.endsWith('+json')) return true
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const members = value as Readonly<Record<string, unknown>>
  if (type === 'application/x-www-form-urlencoded')
    return Object.values(members).every((one) => typeof one === 'string')
  return (
    type === 'multipart/form-data' &&
    Array.isArray(members.file) &&
    members.file.every((one) => typeof one === 'string')
  )
}

/**
 * A message may speak of `modelId` as of "the model id", of `functionId` as of a function, and of `Content-Encoding` as
 * of "the content encoding".
 */
function wordsOf({ name, in: place }: Parameter): readonly string[] {
  const words = name.replace(/Id$/, ' id')
  return place === 'path' || words !== name
    ? [name, words, 'function']
    : [name, name.toLowerCase().replaceAll('-', ' ')]
}

/** Bodies that are read as they come have no names for their places: such a message says which element it is. */
function wordsFor({ template }: Found, { at, schema }: Place): readonly string[] {
  // The first element of a body that is a list has no other name than its index.
  const elements = schema.type === 'array' ? ['[0] must'] : []
  const place = at === '' ? ['body', ...elements, ...(schema.required ?? [])] : [at]
  return template.startsWith('/api/v1/') ? place : [...place, ...(at.match(/\w+$/) ?? []), 'element', 'part', 'array']
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > 80 ? `${text.slice(0, 80)}… (${text.length} characters)` : text
}
