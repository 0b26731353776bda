import { isDeeper, JSON_DEPTH_MAX } from '../automation/run/json-depth.ts'
import { StowageError } from '../errors.ts'
import { quoted } from '../object/id.ts'

/** Reads one member of a JSON text that a client sent; `at` says where it stands. Throws `invalid_request` for what it is not. */
export type Reader<T> = (value: unknown, at: string) => T

type Members = Readonly<Record<string, Reader<unknown>>>
type Values<M extends Members> = {
  readonly [K in keyof M as undefined extends ReturnType<M[K]> ? never : K]: ReturnType<M[K]>
} & {
  readonly [K in keyof M as undefined extends ReturnType<M[K]> ? K : never]?: Exclude<ReturnType<M[K]>, undefined>
}

/** An object with these members and no others. */
export function object<M extends Members>(members: M): Reader<Values<M>> {
  return (value, at) => {
    if (!isObject(value)) throw wrong(at, 'an object', found(value))
    for (const name of Object.keys(value))
      if (!Object.hasOwn(members, name)) throw unknownMember(at, name, Object.keys(members))
    const read: Record<string, unknown> = {}
    for (const [name, reader] of Object.entries(members)) {
      const member = reader(Object.hasOwn(value, name) ? value[name] : undefined, at === '' ? name : `${at}.${name}`)
      if (member !== undefined) read[name] = member
    }
    return read as Values<M>
  }
}

export function optional<T>(reader: Reader<T>): Reader<T | undefined> {
  return (value, at) => (value === undefined ? undefined : reader(value, at))
}

export function nullable<T>(reader: Reader<T>): Reader<T | null> {
  return (value, at) => (value === null ? null : reader(value, at))
}

export function list<T>(reader: Reader<T>, itemsMax: number): Reader<readonly T[]> {
  return (value, at) => {
    if (!Array.isArray(value) || value.length > itemsMax)
      throw wrong(at, `a list of ${itemsMax} items at most`, found(value))
    return value.map((item, index) => reader(item, `${at}[${index}]`))
  }
}

export function record<T>(reader: Reader<T>, checkName: (name: string) => void): Reader<Readonly<Record<string, T>>> {
  return (value, at) => {
    if (!isObject(value)) throw wrong(at, 'an object', found(value))
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => {
        checkName(name)
        return [name, reader(member, `${at}[${quoted(name)}]`)]
      }),
    )
  }
}

export const text: Reader<string> = (value, at) => {
  if (typeof value !== 'string') throw wrong(at, 'a text', found(value))
  return value
}

export const boolean: Reader<boolean> = (value, at) => {
  if (typeof value !== 'boolean') throw wrong(at, 'true or false', found(value))
  return value
}

export function number(min: number, max: number): Reader<number> {
  return (value, at) => {
    if (typeof value !== 'number' || !(value >= min && value <= max))
      throw wrong(at, `a number from ${min} to ${max}`, found(value))
    return value
  }
}

export function integer(min: number, max: number): Reader<number> {
  return (value, at) => {
    if (!Number.isSafeInteger(value) || (value as number) < min || (value as number) > max)
      throw wrong(at, `an integer from ${min} to ${max}`, found(value))
    return value as number
  }
}

export function oneOf<const T extends string>(...choices: readonly T[]): Reader<T> {
  return (value, at) => {
    if (!choices.includes(value as T))
      throw wrong(
        at,
        `one of ${choices.map((choice) => `"${choice}"`).join(', ')}`,
        typeof value === 'string' ? quoted(value) : found(value),
      )
    return value as T
  }
}

/** Any JSON object, of no more than so many bytes and levels. */
export function jsonObject(bytesMax: number): Reader<Readonly<Record<string, never>>> {
  return (value, at) => {
    if (!isObject(value)) throw wrong(at, 'an object', found(value))
    if (isDeeper(value, JSON_DEPTH_MAX)) throw wrong(at, `an object of ${JSON_DEPTH_MAX} levels at most`, 'deeper')
    const bytes = Buffer.byteLength(JSON.stringify(value))
    if (bytes > bytesMax) throw wrong(at, `an object of ${bytesMax} bytes of JSON at most`, `one of ${bytes}`)
    return value as Readonly<Record<string, never>>
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function wrong(at: string, right: string, is: string): StowageError {
  return new StowageError('invalid_request', `${at === '' ? 'the body' : at} must be ${right}; it is ${is}`)
}

/** Texts are not shown: they may be long, or secrets in a wrong place. */
function found(value: unknown): string {
  if (value === undefined) return 'missing'
  if (typeof value === 'string') return 'a text'
  if (Array.isArray(value)) return `a list of ${value.length}`
  return typeof value === 'number' || typeof value === 'boolean' || value === null ? String(value) : 'an object'
}

function unknownMember(at: string, name: string, known: readonly string[]): StowageError {
  const where = at === '' ? 'the body' : at
  return new StowageError(
    'invalid_request',
    `${where} has a member ${quoted(name)}, which is not known here; known are ${known.join(', ')}`,
  )
}
