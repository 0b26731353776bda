import type { Resource } from '../../http/router.ts'
import { undefinedIfNotFound, runRows } from '../views/run-rows.ts'
import type { PageServer } from '../server/page-server.tsx'
import { ModelPage } from '../views/model.tsx'
import { ProjectPage } from '../views/project.tsx'
import { UsagePage } from '../views/usage.tsx'
import { pageAnswer, seeOther } from '../server/visit.ts'

const MODELS_SHOWN = 50
const AUTOMATIONS_SHOWN = 50
const RUNS_SHOWN = 10
const VERSIONS_SHOWN = 50
const MODELS_COUNTED_SHOWN = 1_000

/** A project, and the versions of one of its models. */
export function projectResources<H>(server: PageServer<H>): readonly Resource<H>[] {
  return [
    server.project('', {
      GET: async ({ frame, projectId, project, automation, mayWrite, exchange: { query } }) => {
        const [models, automations, runs] = await Promise.all([
          project.models.list({ limit: MODELS_SHOWN, ...cursorOf(query, 'models') }),
          project.automations.list({ limit: AUTOMATIONS_SHOWN, ...cursorOf(query, 'automations') }),
          project.runs.list({ limit: RUNS_SHOWN }),
        ])
        const rows = await Promise.all(
          models.items.map(async (model) => {
            const latest =
              model.latestVersionId === null
                ? undefined
                : await undefinedIfNotFound(project.versions.get(model.id, model.latestVersionId))
            return { model, latest }
          }),
        )
        const listed = { items: rows, cursor: models.cursor }
        return pageAnswer(
          <ProjectPage
            frame={frame}
            projectId={projectId}
            models={listed}
            automations={automations}
            runs={await runRows(project, runs.items)}
            functions={automation.functions()}
            mayWrite={mayWrite}
          />,
        )
      },
    }),
    server.project('/models/:modelId', {
      GET: async ({ frame, projectId, project, mayWrite, exchange: { params, query } }) => {
        const model = await project.models.get(params.modelId)
        const deleted = query.get('deleted') === 'true'
        const versions = await project.versions.list(model.id, { limit: VERSIONS_SHOWN, deleted, ...cursorOf(query) })
        const page = { frame, projectId, model, versions, showsDeleted: deleted, mayWrite }
        return pageAnswer(<ModelPage {...page} />)
      },
    }),
    usageResource(server),
    ...deletionResources(server),
  ]
}

/** The usage of a project. */
function usageResource<H>(server: PageServer<H>): Resource<H> {
  return server.project('/usage', {
    GET: async ({ frame, projectId, project, context, exchange: { signal } }) => {
      const usage = await context.usage(projectId, signal)
      const shown = usage.groups.slice(0, MODELS_COUNTED_SHOWN)
      const models = await Promise.all(
        shown.map(async ({ groupId }) => undefinedIfNotFound(project.models.get(groupId))),
      )
      const byId = new Map(models.flatMap((model) => (model === undefined ? [] : [[model.id, model] as const])))
      const page = { frame, projectId, usage: { ...usage, groups: shown }, models: byId }
      return pageAnswer(<UsagePage {...page} />)
    },
  })
}

/** Models and versions are deleted, and restored. */
function deletionResources<H>(server: PageServer<H>): readonly Resource<H>[] {
  return (['delete', 'restore'] as const).flatMap((action) => [
    server.project(`/models/:modelId/${action}`, {
      POST: async ({ exchange: { params }, project, projectId, urls }) => {
        await project.models[action](params.modelId)
        return seeOther(urls.model(projectId, params.modelId))
      },
    }),
    server.project(`/models/:modelId/versions/:versionId/${action}`, {
      POST: async ({ exchange: { params }, project, projectId, urls }) => {
        await project.versions[action](params.modelId, params.versionId)
        return seeOther(urls.model(projectId, params.modelId, action === 'delete' ? { deleted: 'true' } : {}))
      },
    }),
  ])
}

/** The start of the next part of a list. */
export function cursorOf(query: URLSearchParams, name = 'cursor'): { readonly cursor?: string } {
  const cursor = query.get(name)
  return cursor === null || cursor === '' ? {} : { cursor }
}
