import * as fc from 'fast-check'
import type { Schema } from '../../src/openapi/description/types.ts'
import type { Place } from './places.ts'

export interface BrokenValue {
  readonly rule: string
  readonly value: unknown
  /** The member that is missing or too many, which the answer has to name. */
  readonly member?: string
}

const OF_EACH_TYPE: readonly unknown[] = [null, true, 0, 1.5, 'text', [], {}, ['a'], { a: 1 }]
/** Letters of one, two, three and four bytes; the last one has two UTF-16 units. */
const LETTERS: readonly string[] = ['a', 'é', '€', '😀']
const TEXTS: readonly string[] = [
  '',
  'a',
  ' a ',
  'a\nb',
  'a\tb',
  '..',
  'a/b?c#d%20',
  '<b>&amp;',
  '"\\',
  '__proto__',
  '\u00a0\u2003\ufeff',
  '\u200e\u202e',
  'e\u0301',
  '\ufffd',
  '0',
  'null',
  '0'.repeat(32),
]
/** Each of these is refused by some pattern of the document. */
const CONTROLS: readonly string[] = ['\0', 'a\u0000b', 'a\u001fb', 'a\u007fb', 'a\u0085b', 'a\u2028b', 'a\nb', ' ']
const JSON_VALUES: readonly unknown[] = [...OF_EACH_TYPE, -1, 1e300, '', [[]], { a: { b: [null] } }]

/** Values that the schema allows in a place: those at its bounds, and `count` random ones. */
export function allowedValues(place: Place, count: number, seed: number): unknown[] {
  const { schema } = place
  const random = fc.sample(randomValues(schema), { numRuns: count, seed })
  return [...atBounds(schema), ...random].filter((value) => place.allows(value))
}

/** Values that break one rule of the schema in a place, whatever stands around it. */
export function brokenValues(place: Place): BrokenValue[] {
  const { schema, value } = place
  const broken = [
    ...OF_EACH_TYPE.map((other) => ({ rule: 'type', value: other })),
    ...brokenTexts(schema, value),
    ...brokenNumbers(schema),
    ...brokenLists(schema, value),
    ...brokenObjects(schema, value),
  ]
  return broken.filter((one) => !place.allows(one.value))
}

function atBounds(schema: Schema): unknown[] {
  if (schema.enum !== undefined) return [...schema.enum]
  if (schema.const !== undefined) return [schema.const]
  if (schema.type === 'boolean') return [true, false]
  if (schema.type === 'integer' || schema.type === 'number')
    return [schema.minimum ?? -1e6, schema.maximum ?? 1e6, ...(schema.type === 'number' ? [0.5, 5e-324] : [])]
  if (schema.type === 'string') {
    const lengths = [schema.minLength ?? 0, schema.maxLength ?? 300]
    const longest = lengths.flatMap((length) => LETTERS.map((letter) => letter.repeat(length)))
    return [...TEXTS, ...longest]
  }
  return schema.type === undefined || schema.type === 'object' || schema.type === 'array' ? [...JSON_VALUES] : []
}

function randomValues({ type, pattern, minimum = -1e6, maximum = 1e6 }: Schema): fc.Arbitrary<unknown> {
  if (type === 'integer') return fc.integer({ min: minimum, max: maximum })
  if (type === 'number') return fc.double({ min: minimum, max: maximum, noNaN: true })
  if (type === 'string' && pattern !== undefined && !pattern.includes('[^'))
    return fc.stringMatching(new RegExp(pattern))
  if (type === 'string') return fc.string({ unit: 'grapheme', maxLength: 40 })
  return fc.jsonValue({ maxDepth: 3 })
}

function brokenTexts(schema: Schema, value: unknown): BrokenValue[] {
  if (schema.type !== 'string') return []
  const text = String(value)
  const { minLength = 0, maxLength } = schema
  return [
    ...(schema.enum === undefined ? [] : ['', 'other', `${text}s`]).map((other) => ({ rule: 'enum', value: other })),
    ...(minLength === 0 ? [] : [{ rule: 'minLength', value: 'a'.repeat(minLength - 1) }]),
    ...(maxLength === undefined
      ? []
      : LETTERS.map((letter) => ({ rule: 'maxLength', value: letter.repeat(maxLength + 1) }))),
    ...(schema.pattern === undefined
      ? []
      : [...CONTROLS, '', `${text}~`, `~${text}`, text.toUpperCase(), '😀'].map((other) => ({
          rule: 'pattern',
          value: other,
        }))),
  ]
}

function brokenNumbers({ type, minimum, maximum }: Schema): BrokenValue[] {
  return [
    ...(type === 'integer' ? [{ rule: 'integer', value: (minimum ?? 0) + 0.5 }] : []),
    ...(minimum === undefined ? [] : [{ rule: 'minimum', value: minimum - 1 }]),
    ...(maximum === undefined ? [] : [{ rule: 'maximum', value: maximum === 1 ? 1.001 : maximum + 1 }]),
  ]
}

function brokenLists({ type, minItems = 0, maxItems }: Schema, value: unknown): BrokenValue[] {
  if (type !== 'array') return []
  const [first] = value as readonly unknown[]
  return [
    ...(minItems === 0 ? [] : [{ rule: 'minItems', value: [] }]),
    ...(maxItems === undefined ? [] : [{ rule: 'maxItems', value: Array.from({ length: maxItems + 1 }, () => first) }]),
  ]
}

function brokenObjects(schema: Schema, value: unknown): BrokenValue[] {
  if (schema.type !== 'object' || typeof value !== 'object') return []
  const members = value as Readonly<Record<string, unknown>>
  const without = (schema.required ?? []).map((name) => ({
    rule: 'required',
    value: Object.fromEntries(Object.entries(members).filter(([key]) => key !== name)),
    member: name,
  }))
  const unknown = ['unknown', '__proto__', 'constructor', ''].map((name) => ({
    rule: 'additionalProperties',
    value: { ...members, ...Object.fromEntries([[name, 1]]) },
    member: name,
  }))
  const names = schema.propertyNames === undefined ? [] : ['', 'a\u0000b', 'x'.repeat(513)]
  const named = names.map((name) => ({
    rule: 'propertyNames',
    value: { ...members, ...Object.fromEntries([[name, null]]) },
  }))
  const typed =
    typeof schema.additionalProperties === 'object'
      ? OF_EACH_TYPE.map((other) => ({ rule: 'type of a member', value: { ...members, a: other } }))
      : []
  return [...without, ...unknown, ...named, ...typed]
}
