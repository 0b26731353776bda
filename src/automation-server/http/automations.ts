import type { Principal } from '../../access/access.ts'
import { StowageError } from '../../errors.ts'
import type { Resource } from '../../http/router.ts'
import { quoted } from '../../object/id.ts'
import { AUTOMATION_CHANGE, NEW_AUTOMATION, RUN_START } from '../schemas/shapes/automations.ts'
import type { HttpDeps } from './deps.ts'
import { handlersOf, resource } from './handlers.ts'
import { readJson, readOptionalJson, readQuery } from './json.ts'

const AUTOMATIONS = '/api/v1/projects/:projectId/automations'

/** Automations, and starting one by hand. */
export function automationResourcesOf<H>({ domain, context, limits }: HttpDeps<H>): readonly Resource<H>[] {
  const { automations, runs } = domain
  const { bodyBytesMax } = limits
  const { reading, changing, removing } = handlersOf(context)
  const checkReach = reachCheck(context.authorize)
  return [
    resource(AUTOMATIONS, {
      GET: reading((exchange) => automations.list(exchange.params.projectId, readQuery(exchange))),
      POST: changing(async (exchange, principal) => {
        const wanted = await readJson(exchange, bodyBytesMax, NEW_AUTOMATION)
        await checkReach(principal, wanted.projects ?? [])
        return automations.create(exchange.params.projectId, wanted)
      }, 201),
    }),
    resource(`${AUTOMATIONS}/:automationId`, {
      GET: reading(({ params }) => automations.get(params.projectId, params.automationId)),
      PATCH: changing(async (exchange, principal) => {
        const { projectId, automationId } = exchange.params
        const change = await readJson(exchange, bodyBytesMax, AUTOMATION_CHANGE)
        // An automation acts with rights that another person may have given it.
        const { projects: named } = await automations.get(projectId, automationId)
        await checkReach(principal, [...named, ...(change.projects ?? [])])
        return automations.change(projectId, automationId, change)
      }),
      DELETE: removing(({ params }) => automations.remove(params.projectId, params.automationId)),
    }),
    resource(`${AUTOMATIONS}/:automationId/runs`, {
      POST: changing(async (exchange, startedBy) => {
        const { projectId, automationId } = exchange.params
        const { versionId, external = false } = await readOptionalJson(exchange, bodyBytesMax, RUN_START)
        if (!external) return runs.start(projectId, automationId, { versionId, startedBy })
        const { run, token } = await runs.startExternal(projectId, automationId, { versionId, startedBy })
        return { ...run, token }
      }, 201),
    }),
  ]
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
