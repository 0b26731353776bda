import { ClientError, quoted } from './errors.ts'
import type { ObjectText } from './types.ts'

/** By the rules for ids of objects: 1 to 512 bytes of UTF-8, without control characters and separators of lines. */
const ID_BYTES_MAX = 512
const REFUSED = /[\p{Cc}\u2028\u2029\p{Surrogate}]/u
const encoder = new TextEncoder()

/**
 * The one rule for references, wherever they are followed: a nested value with a string `referencedId` that can be an
 * object's id is a reference to that object, whatever else it holds. The server has the same one, over bytes.
 */
export function isReference(value: unknown): value is { readonly referencedId: string } {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const { referencedId: id } = value as { readonly referencedId?: unknown }
  return typeof id === 'string' && isObjectId(id)
}

function isObjectId(text: string): boolean {
  if (text === '' || text.length > ID_BYTES_MAX || REFUSED.test(text)) return false
  return text.length * 3 <= ID_BYTES_MAX || encoder.encode(text).length <= ID_BYTES_MAX
}

/** The ids below one object, according to its text. */
export interface ReferencedIds {
  /** Ids that it refers to, at any depth: its children. */
  readonly references: readonly string[]
  /** Ids in its `__closure`: claims of a client. */
  readonly claims: readonly string[]
}

/** The object's own `referencedId` counts, too. Throws `invalid_answer` for anything but the text of an object. */
export function referencedIdsOf(object: ObjectText): ReferencedIds {
  const references: string[] = []
  const root = parsed(object)
  const { __closure: closure } = root
  const open: object[] = [root]
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (isReference(value)) references.push(value.referencedId)
    for (const inner of Array.isArray(value) ? (value as unknown[]) : Object.values(value)) {
      if (typeof inner === 'object' && inner !== null && inner !== closure) open.push(inner)
    }
  }
  return { references, claims: typeof closure === 'object' && closure !== null ? Object.keys(closure) : [] }
}

function parsed({ id, json }: ObjectText): Readonly<Record<string, unknown>> {
  try {
    const value = JSON.parse(json) as unknown
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  } catch (cause) {
    throw new ClientError('invalid_answer', `the text of object ${quoted(id)} is not JSON`, { cause })
  }
  throw new ClientError('invalid_answer', `the text of object ${quoted(id)} is not a JSON object`)
}
