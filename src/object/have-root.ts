import type { HaveRoot } from './graph-store.ts'
import { checkObjectId } from './id.ts'

/** A digest is hex digits, so that an id which holds an `@` itself is still an id. */
const ID_AT_DIGEST = /^(.+)@([0-9a-f]{16,128})$/s

/** A root that the client has: `<id>`, or `<id>@<closure digest>`. Throws `invalid_id`. */
export function parseHaveRoot(value: string): HaveRoot {
  const [, id, digest] = ID_AT_DIGEST.exec(value) ?? []
  const root: HaveRoot = id === undefined || digest === undefined ? { id: value } : { id, digest }
  checkObjectId(root.id, 'have: the object id')
  return root
}
