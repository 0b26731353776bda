/** What may be done in a project. `write` includes `read` where the usual `authorize` decides. */
export type Right = 'read' | 'write'

/** In a principal's `projects`: the right holds for every project. */
export const ALL_PROJECTS = '*'

/** Who makes a request. `jwtAccess` makes one of a token; hosts with accounts of their own make theirs by hand. */
export interface Principal {
  /** Names the account in events, `''` where there is none. Never a secret. */
  readonly subject: string
  /** Which of the subject's tokens it was (`jti`), where there are tokens. */
  readonly tokenId?: string
  /** The right on each project by its id, `*` for every project. `write` includes `read`. Only `claimAuthorize` looks at it. */
  readonly projects?: ReadonlyMap<string, Right> | Readonly<Record<string, Right>>
}

/** What there is to tell who makes a request. `host` is what the mount knows of the request, or what the host passed to `fetch`. */
export interface AccessRequest<H> {
  /** The headers of the request. */
  readonly headers: Headers
  /** The method of the request. */
  readonly method: string
  /** The path as it arrived, with the prefix and without the query. */
  readonly path: string
  /** What the host passed with the request. */
  readonly host: H
}

/**
 * Who is it, and what may they do. Either half can be replaced: `{ authenticate: mine, authorize: claimAuthorize }`, or
 * `{ ...jwtAccess(options), authorize: mine }`. What either throws fails the request: a `StowageError` with its own status, all else with 500.
 */
export interface Access<H> {
  /** `undefined` answers 401. */
  authenticate(request: AccessRequest<H>): Principal | undefined | Promise<Principal | undefined>
  /** `false` answers 403. Asked before anything about the project is looked up, so that an answer tells nothing about what exists. */
  authorize(principal: Principal, projectId: string, right: Right): boolean | Promise<boolean>
  /** What refused requests are told. Without it, that they are not signed in, or that there is no such right. */
  readonly refusals?: AccessRefusals<H>
}

/** The words of 401 and 403. They are sent to everybody, so they must hold no secret. */
export interface AccessRefusals<H> {
  /** `challenge` is the value of `WWW-Authenticate` (RFC 9110, section 11.6.1). */
  readonly unauthenticated?: (request: AccessRequest<H>) => { readonly message: string; readonly challenge: string }
  /** The message of 403. */
  readonly forbidden?: (principal: Principal, projectId: string, right: Right) => string
}

/** The usual `authorize`: what the principal's `projects` grants, either for this project or for all (`*`). */
export function claimAuthorize(principal: Principal, projectId: string, right: Right): boolean {
  const { projects } = principal
  if (projects === undefined) return false
  return grants(rightOn(projects, projectId), right) || grants(rightOn(projects, ALL_PROJECTS), right)
}

/** A plain object has inherited members too: a project named `constructor` or `__proto__` must not find them. */
function rightOn(projects: NonNullable<Principal['projects']>, projectId: string): unknown {
  if (projects instanceof Map) return projects.get(projectId)
  return Object.hasOwn(projects, projectId) ? (projects as Readonly<Record<string, Right>>)[projectId] : undefined
}

function grants(held: unknown, wanted: Right): boolean {
  return held === 'write' || (held === 'read' && wanted === 'read')
}
