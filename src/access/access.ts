/** The rights in a project. With the default `authorize`, `write` includes `read`. */
export type AccessRight = 'read' | 'write'

/** In a principal's `projects`: the right holds for every project. */
export const ALL_PROJECTS = '*'

/**
 * The account that makes a request. `jwtAccess` makes one from a token; hosts with their own accounts make it by hand.
 */
export interface Principal {
  /** The name of the account in events; `''` if there is none. Never a secret. */
  readonly subject: string
  /** The id of the subject's token (`jti`), if there are tokens. */
  readonly tokenId?: string
  /**
   * The right on each project by its id, `*` for every project. `write` includes `read`. Only `claimAuthorize` uses it.
   */
  readonly projects?: ReadonlyMap<string, AccessRight> | Readonly<Record<string, AccessRight>>
  /**
   * Where it may read, it may also read the secrets of automations in the form in which the server stores them: for
   * backups that contain the keys. Otherwise that needs the right to write.
   */
  readonly readsSealedSecrets?: boolean
}

/**
 * The facts that identify the account behind a request. `host` is the mount's view of the request, or the value that
 * the host passed to `fetch`.
 */
export interface AccessRequest<H> {
  /**
   * The headers of the request. Those of Node's requests have all methods of `Headers` without being an instance of it;
   * `new Headers(headers)` makes one.
   */
  readonly headers: Headers
  /** The method of the request. */
  readonly method: string
  /** The path as it arrived, with the prefix and without the query. */
  readonly path: string
  /** The value that the host passed with the request. */
  readonly host: H
}

/**
 * Authentication and authorization. Either half can be replaced: `{ authenticate: mine, authorize: claimAuthorize }`,
 * or `{ ...jwtAccess(options), authorize: mine }`. An error that either throws fails the request: a `StowageError` with
 * its own status, any other with 500.
 */
export interface Access<H> {
  /** `undefined` answers 401. */
  authenticate(request: AccessRequest<H>): Principal | undefined | Promise<Principal | undefined>
  /**
   * `false` answers 403. Called before anything about the project is looked up, so that a response reveals nothing
   * about existing data.
   */
  authorize(principal: Principal, projectId: string, right: AccessRight): boolean | Promise<boolean>
  /** The texts for refused requests. By default they say that the request is not signed in, or lacks the right. */
  readonly refusals?: AccessRefusals<H>
}

/** The words of 401 and 403. They are sent to everybody, so they must hold no secret. */
export interface AccessRefusals<H> {
  /** `challenge` is the value of `WWW-Authenticate` (RFC 9110, section 11.6.1). */
  readonly unauthenticated?: (request: AccessRequest<H>) => { readonly message: string; readonly challenge: string }
  /** The message of 403. */
  readonly forbidden?: (principal: Principal, projectId: string, right: AccessRight) => string
}

/** The default `authorize`: the principal's `projects` grant rights, either for this project or for all (`*`). */
export function claimAuthorize(principal: Principal, projectId: string, right: AccessRight): boolean {
  const { projects } = principal
  if (projects === undefined) return false
  return grants(rightOn(projects, projectId), right) || grants(rightOn(projects, ALL_PROJECTS), right)
}

/** A plain object has inherited members too: a project named `constructor` or `__proto__` must not find them. */
function rightOn(projects: NonNullable<Principal['projects']>, projectId: string): unknown {
  if (projects instanceof Map) return projects.get(projectId)
  return Object.hasOwn(projects, projectId) ? (projects as Readonly<Record<string, AccessRight>>)[projectId] : undefined
}

function grants(held: unknown, wanted: AccessRight): boolean {
  return held === 'write' || (held === 'read' && wanted === 'read')
}
