import { ClientError, quoted } from './errors.ts'
import type { ObjectText } from './types.ts'

/** What one object says about those below it. */
export interface Below {
  /** Ids that it refers to, at any depth: its children. */
  readonly references: readonly string[]
  /** Ids in its `__closure`: what a client once said. */
  readonly claims: readonly string[]
}

/** A child is any nested value with a string `referencedId`. Throws `invalid_answer` for what is not the text of an object. */
export function belowOf(object: ObjectText): Below {
  const references: string[] = []
  const root = parsed(object)
  const { __closure: closure } = root
  const open: object[] = [root]
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    const { referencedId } = value as { readonly referencedId?: unknown }
    if (typeof referencedId === 'string') references.push(referencedId)
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
