import type { Principal } from '../../access/access.ts'
import { StowageError } from '../../errors.ts'
import type { Resource } from '../../http/router.ts'
import { quoted } from '../../object/id.ts'
import { checkNoRun } from '../domain/run-access.ts'
import { AUTOMATION_CHANGE, NEW_AUTOMATION, RUN_START } from '../schemas/shapes/automations.ts'
import type { HttpDeps } from './deps.ts'
import { checkParams, jsonAnswer, readJson, readOptionalJson, readQuery } from './json.ts'

const AUTOMATIONS = '/api/v1/projects/:projectId/automations'

/** Automations, and starting one by hand. */
export function automationResourcesOf<H>({
  domain,
  context: { guard, authorize },
  limits,
}: HttpDeps<H>): readonly Resource<H>[] {
  const { automations } = domain
  const checkReach = reachCheck(authorize)
  return [
    {
      path: AUTOMATIONS,
      check: checkParams,
      operations: {
        GET: async (exchange) => {
          await guard(exchange, 'read')
          return jsonAnswer(200, await automations.list(exchange.params.projectId, readQuery(exchange)))
        },
        POST: async (exchange) => {
          const principal = await guard(exchange, 'write')
          checkNoRun(principal)
          const wanted = await readJson(exchange, limits.bodyBytesMax, NEW_AUTOMATION)
          await checkReach(principal, wanted.projects ?? [])
          return jsonAnswer(201, await automations.create(exchange.params.projectId, wanted))
        },
      },
    },
    {
      path: `${AUTOMATIONS}/:automationId`,
      check: checkParams,
      operations: {
        GET: async (exchange) => {
          await guard(exchange, 'read')
          return jsonAnswer(200, await automations.get(exchange.params.projectId, exchange.params.automationId))
        },
        PATCH: async (exchange) => {
          const principal = await guard(exchange, 'write')
          checkNoRun(principal)
          const { projectId, automationId } = exchange.params
          const change = await readJson(exchange, limits.bodyBytesMax, AUTOMATION_CHANGE)
          // An automation acts with rights that another person may have given it.
          const { projects: named } = await automations.get(projectId, automationId)
          await checkReach(principal, [...named, ...(change.projects ?? [])])
          return jsonAnswer(200, await automations.change(projectId, automationId, change))
        },
        DELETE: async (exchange) => {
          checkNoRun(await guard(exchange, 'write'))
          await automations.remove(exchange.params.projectId, exchange.params.automationId)
          return { status: 204, headers: { 'Cache-Control': 'private, no-store' } }
        },
      },
    },
    startResource({ domain, context: { guard }, limits }),
  ]
}

/** Starting one by hand. */
function startResource<H>({
  domain: { runs },
  context: { guard },
  limits,
}: Pick<HttpDeps<H>, 'domain' | 'limits'> & { readonly context: Pick<HttpDeps<H>['context'], 'guard'> }): Resource<H> {
  return {
    path: `${AUTOMATIONS}/:automationId/runs`,
    check: checkParams,
    operations: {
      POST: async (exchange) => {
        const startedBy = await guard(exchange, 'write')
        checkNoRun(startedBy)
        const { projectId, automationId } = exchange.params
        const { versionId, external = false } = await readOptionalJson(exchange, limits.bodyBytesMax, RUN_START)
        if (!external) return jsonAnswer(201, await runs.start(projectId, automationId, { versionId, startedBy }))
        const { run, token } = await runs.startExternal(projectId, automationId, { versionId, startedBy })
        return jsonAnswer(201, { ...run, token })
      },
    },
  }
}

/** Nobody can give a run rights that they do not have. */
function reachCheck(
  authorize: HttpDeps<never>['context']['authorize'],
): (principal: Principal, named: readonly string[]) => Promise<void> {
  return async (principal, named) => {
    for (const projectId of named)
      if (!(await authorize(principal, projectId, 'write')))
        throw new StowageError(
          'forbidden',
          `runs of an automation write in the project ${quoted(projectId)}, which needs your right to write there`,
        )
  }
}
