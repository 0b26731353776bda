import type { Schema } from '../../src/openapi/description/types.ts'
import { type Conformance, isReference } from '../openapi/conformance.ts'

/** One place of a value that a schema describes: the value itself, a member, an item. */
export interface Place {
  /** As messages call it, such as `annotations[0].category`; empty for the whole value. */
  readonly at: string
  readonly schema: Schema
  readonly value: unknown
  /** The whole value, with another one in this place. */
  readonly put: (value: unknown) => unknown
  /** Whether the schema allows the whole value, with this one in this place. */
  readonly allows: (value: unknown) => boolean
}

/** Every place of a value. A member that the value lacks is a place too, with a value that its schema allows. */
export function placesOf(conformance: Conformance, schema: Schema, value: unknown): Place[] {
  return placesBelow(conformance, {
    at: '',
    schema,
    value,
    put: (other) => other,
    allows: (other) => conformance.allows(schema, other),
  })
}

/** The shortest value that a schema allows. */
export function leastValue(conformance: Conformance, given: Schema): unknown {
  const schema = resolved(conformance, given)
  const below = (one: Schema): unknown => leastValue(conformance, one)
  const [choice] = schema.oneOf ?? schema.anyOf ?? []
  if (choice !== undefined) return below(choice)
  if (schema.const !== undefined) return schema.const
  if (schema.enum !== undefined) return schema.enum[0]
  if (schema.contentSchema !== undefined) return JSON.stringify(below(schema.contentSchema))
  if (schema.type === 'array')
    return [
      ...(schema.prefixItems ?? []).map(below),
      ...(schema.items !== undefined && schema.prefixItems === undefined ? [below(schema.items)] : []),
    ]
  if (schema.type === 'object')
    return Object.fromEntries((schema.required ?? []).map((name) => [name, below(schema.properties?.[name] ?? {})]))
  if (schema.type === 'string') return leastText(schema)
  if (schema.type === 'integer' || schema.type === 'number') return schema.minimum ?? 0
  return schema.type === 'boolean' ? true : null
}

export function resolved(conformance: Conformance, schema: Schema): Schema {
  return isReference(schema) ? conformance.resolve<Schema>(schema) : schema
}

function leastText({ pattern = '', minLength = 0 }: Schema): string {
  const texts = [
    '',
    'a',
    '0'.repeat(32),
    '0'.repeat(64),
    `a@${'0'.repeat(16)}`,
    '0.0',
    '1.0.0',
    `0.0.0.0.0.0.${'0'.repeat(16)}`,
    '00000000',
    '2026-01-01T00:00:00.000Z',
    // A public key (X25519).
    'MCowBQYDK2VuAyEAhSDwCYkwp1R0i33ctD73Wg2_Og0mOBr066SpjqqbTmo',
  ]
  const text = texts.find((one) => one.length >= minLength && new RegExp(pattern, 'u').test(one))
  if (text === undefined) throw new Error(`no text here fits the pattern ${pattern}`)
  return text
}

function placesBelow(conformance: Conformance, place: Place): Place[] {
  const schema = resolved(conformance, place.schema)
  const { at, value } = place
  const next = (name: string, one: Schema, inner: unknown, wrap: (inner: unknown) => unknown): Place[] =>
    placesBelow(conformance, {
      at: name,
      schema: one,
      value: inner ?? leastValue(conformance, one),
      put: (other) => place.put(wrap(other)),
      allows: (other) => place.allows(wrap(other)),
    })
  const own = { ...place, schema }
  const choices = schema.oneOf ?? schema.anyOf
  if (choices !== undefined)
    return [
      own,
      ...choices.flatMap((one) => {
        const fitting = conformance.allows(one, value) ? value : leastValue(conformance, one)
        return placesBelow(conformance, { ...place, schema: one, value: fitting })
      }),
    ]
  if (schema.contentSchema !== undefined) {
    const { contentSchema } = schema
    const inner: unknown = JSON.parse(value as string)
    const nested = placesBelow(conformance, {
      at,
      schema: contentSchema,
      value: inner,
      put: (other) => place.put(JSON.stringify(other)),
      allows: (other) => conformance.allows(contentSchema, other),
    })
    return [own, ...nested]
  }
  if (schema.type === 'array' && schema.items !== undefined && schema.prefixItems === undefined) {
    const [first, ...others] = value as readonly unknown[]
    return [own, ...next(`${at}[0]`, schema.items, first, (inner) => [inner, ...others])]
  }
  if (schema.type !== 'object') return [own]
  const members = value as Readonly<Record<string, unknown>>
  const known = Object.entries(schema.properties ?? {}).flatMap(([name, one]) =>
    next(at === '' ? name : `${at}.${name}`, one, members[name], (inner) => ({ ...members, [name]: inner })),
  )
  return [own, ...known]
}
