import type { Access, AccessRequest, Principal, AccessRight } from '../../access/access.ts'
import { bearerToken } from '../../access/bearer.ts'
import { StowageError } from '../../errors.ts'
import { matchesPathEnd } from '../../http/router.ts'
import type { Domain } from './domain.ts'
import type { RunClaims } from './run-tokens.ts'
import { allowsProject, type AllowedProjects } from './allowed-projects.ts'
import { isFinal } from './run-record.ts'

/**
 * Paths that still accept a run that has ended: it may not know yet that its last report arrived, or that it was
 * canceled.
 */
const LAST_WORDS: readonly string[] = [
  '/api/v1/projects/:projectId/runs/:runId/report',
  '/api/v1/projects/:projectId/runs/:runId/lease',
]

/** A run, which asks with its own token. */
export class RunPrincipal implements Principal {
  readonly subject: string
  readonly projects: ReadonlyMap<string, AccessRight>
  readonly projectId: string
  readonly runId: string
  readonly attempt: number
  readonly #reach: AllowedProjects

  constructor({ projectId, runId, attempt }: RunClaims, reach: AllowedProjects) {
    this.subject = `run:${runId}`
    this.projects = new Map([[projectId, 'write']])
    this.projectId = projectId
    this.runId = runId
    this.attempt = attempt
    this.#reach = reach
  }

  /** By the id itself: in claims `*` means every project, and a project may have that id. */
  mayWrite(projectId: string): boolean {
    return projectId === this.projectId || allowsProject(this.#reach, projectId)
  }
}

/**
 * The host's access, which knows the tokens of runs as well: each may write in its project, and in those that its run
 * was given, until its run has ended.
 */
export function withRunTokens<H>(access: Access<H>, domain: () => Domain): Access<H> {
  return {
    ...(access.refusals === undefined ? {} : { refusals: access.refusals }),
    authenticate: async (request) => {
      const token = bearerToken(request.headers)
      if (token === undefined || !domain().tokens.isOne(token)) return access.authenticate(request)
      return runPrincipal(domain(), token, request)
    },
    authorize: (principal, projectId, right) =>
      principal instanceof RunPrincipal ? principal.mayWrite(projectId) : access.authorize(principal, projectId, right),
  }
}

async function runPrincipal<H>(
  { tokens, store }: Domain,
  token: string,
  { path }: AccessRequest<H>,
): Promise<RunPrincipal | undefined> {
  const claims = await tokens.verify(token)
  if (claims === undefined) return undefined
  const scope = await store.scope(claims.projectId)
  const run =
    scope === undefined
      ? undefined
      : (
          await store.get<{
            readonly status: Parameters<typeof isFinal>[0]
            readonly attempt: number
            readonly reach: AllowedProjects
          }>(scope, 'run', claims.runId)
        )?.value
  if (run === undefined || run.attempt !== claims.attempt) return undefined
  if (isFinal(run.status) && !LAST_WORDS.some((last) => matchesPathEnd(path, last))) return undefined
  return new RunPrincipal(claims, run.reach)
}

/** The run that asks. Throws `forbidden` unless it is this very one. */
export function ownRun(principal: Principal, projectId: string, runId: string): RunPrincipal {
  if (principal instanceof RunPrincipal && principal.projectId === projectId && principal.runId === runId)
    return principal
  throw new StowageError('forbidden', "this path accepts only the run's own token")
}

/** Throws `forbidden` for a run: runs may not start, change or stop runs. */
export function checkNoRun(principal: Principal): void {
  if (principal instanceof RunPrincipal)
    throw new StowageError('forbidden', 'the token of a run does not give the right to manage automations and runs')
}
