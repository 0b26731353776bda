/** What one object says about those below it. */
export interface Below {
  /** Ids that it refers to, at any depth: its children. */
  readonly references: readonly string[]
  /** Ids in its `__closure`: what a client once said. */
  readonly claims: readonly string[]
}

/** A child is any nested value with a string `referencedId`. */
export function belowOf(json: string): Below {
  const references: string[] = []
  const root = JSON.parse(json) as Record<string, unknown>
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
