import type { Exchange } from '../../http/exchange.ts'
import type { Resource } from '../../http/router.ts'
import { optional } from '../../openapi/description/shape.ts'
import { ANNOTATION_LEVEL, RUN_STATUS } from '../schemas/shapes/reports.ts'
import type { AnnotationFilter, RunFilter } from '../schemas/types.ts'
import type { HttpDeps } from './deps.ts'
import { handlersOf, resource } from './handlers.ts'
import { readQuery } from './json.ts'

export const RUNS = '/api/v1/projects/:projectId/runs'
const STATUS = optional(RUN_STATUS)
const LEVEL = optional(ANNOTATION_LEVEL)

/** Runs as people and pages see them. */
export function runResources<H>({ domain, context }: HttpDeps<H>): readonly Resource<H>[] {
  const { runs } = domain
  const { reading, changing } = handlersOf(context)
  return [
    resource(RUNS, { GET: reading((exchange) => runs.list(exchange.params.projectId, runFilter(exchange))) }),
    resource(`${RUNS}/:runId`, { GET: reading(({ params }) => runs.get(params.projectId, params.runId)) }),
    resource(`${RUNS}/:runId/annotations`, {
      GET: reading((exchange) =>
        domain.listAnnotations(exchange.params.projectId, exchange.params.runId, annotationFilter(exchange)),
      ),
    }),
    resource(`${RUNS}/:runId/logs`, {
      GET: reading((exchange) =>
        domain.listLogs(exchange.params.projectId, exchange.params.runId, readQuery(exchange)),
      ),
    }),
    resource(`${RUNS}/:runId/cancel`, { POST: changing(({ params }) => runs.cancel(params.projectId, params.runId)) }),
    resource(`${RUNS}/:runId/rerun`, {
      POST: changing(({ params }, startedBy) => runs.rerun(params.projectId, params.runId, { startedBy }), 201),
    }),
  ]
}

function runFilter(exchange: Pick<Exchange<unknown>, 'query'>): RunFilter {
  const { status, ...others } = readQuery(exchange, 'automationId', 'modelId', 'versionId', 'status')
  const read = STATUS.read(status, 'status')
  return read === undefined ? others : { ...others, status: read }
}

function annotationFilter(exchange: Pick<Exchange<unknown>, 'query'>): AnnotationFilter {
  const { level, ...others } = readQuery(exchange, 'level', 'category', 'objectId')
  const read = LEVEL.read(level, 'level')
  return read === undefined ? others : { ...others, level: read }
}
