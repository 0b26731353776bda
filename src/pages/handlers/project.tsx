import type { Answer } from '../../http/exchange.ts'
import type { Resource } from '../../http/router.ts'
import { undefinedIfNotFound, runRows } from '../views/run-rows.ts'
import type { PageServer } from '../server/page-server.tsx'
import { ModelPage } from '../views/model.tsx'
import { ProjectPage } from '../views/project.tsx'
import type { RefusedRetention } from '../views/retention.tsx'
import { pageAnswer, type ProjectVisit, seeOther } from '../server/visit.ts'

const MODELS_SHOWN = 50
const AUTOMATIONS_SHOWN = 50
const RUNS_SHOWN = 10
const VERSIONS_SHOWN = 50

/** A project, and the versions of one of its models. */
export function projectResources<H>(server: PageServer<H>): readonly Resource<H>[] {
  return [
    server.project('', {
      GET: async ({ frame, projectId, project, automation, mayWrite, exchange: { query } }) => {
        const deleted = query.get('deleted') === 'true'
        const [models, automations, runs] = await Promise.all([
          project.models.list({ limit: MODELS_SHOWN, deleted, ...cursorOf(query, 'models') }),
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
            showsDeleted={deleted}
            automations={automations}
            runs={await runRows(project, runs.items)}
            functions={automation.functions()}
            mayWrite={mayWrite}
          />,
        )
      },
    }),
    server.project('/models/:modelId', { GET: (visit) => showModel(visit) }),
    ...deletionResources(server),
  ]
}

/** The versions of a model, how long they are kept, and a rule that was refused. */
export async function showModel<H>(
  { frame, projectId, project, mayWrite, exchange: { params, query } }: ProjectVisit<H>,
  refused?: RefusedRetention,
): Promise<Answer> {
  const model = await project.models.get(params.modelId)
  const deleted = query.get('deleted') === 'true'
  const versions = await project.versions.list(model.id, { limit: VERSIONS_SHOWN, deleted, ...cursorOf(query) })
  const pruned =
    model.retention === null || model.deletedAt !== null
      ? undefined
      : await project.models.prune(model.id, { dryRun: true })
  const expired = pruned && { count: pruned.versions.length, hasMore: pruned.hasMore }
  const page = { frame, projectId, model, versions, expired, refused, showsDeleted: deleted, mayWrite }
  return pageAnswer(<ModelPage {...page} />, refused === undefined ? 200 : 422)
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
