import type { Exchange } from '../../http/exchange.ts'
import type { Method, Resource } from '../../http/router.ts'
import { checkNoRun } from '../domain/run-access.ts'
import { optional } from '../../openapi/description/shape.ts'
import { ANNOTATION_LEVEL, RUN_STATUS } from '../schemas/shapes/reports.ts'
import type { AnnotationFilter, RunFilter } from '../schemas/types.ts'
import type { HttpDeps } from './deps.ts'
import { checkParams, jsonAnswer, readQuery } from './json.ts'

export const RUNS = '/api/v1/projects/:projectId/runs'
const STATUS = optional(RUN_STATUS)
const LEVEL = optional(ANNOTATION_LEVEL)

/** Runs as people and pages see them. */
export function runResources<H>(deps: HttpDeps<H>): readonly Resource<H>[] {
  const {
    domain,
    context: { guard },
  } = deps
  const { runs } = domain
  const reading = (path: string, read: (exchange: Exchange<H>) => Promise<unknown>): Resource<H> =>
    resourceOf(path, 'GET', async (exchange) => {
      await guard(exchange, 'read')
      return jsonAnswer(200, await read(exchange))
    })
  return [
    reading(RUNS, (exchange) => runs.list(exchange.params.projectId, runFilter(exchange))),
    reading(`${RUNS}/:runId`, ({ params }) => runs.get(params.projectId, params.runId)),
    reading(`${RUNS}/:runId/annotations`, (exchange) =>
      domain.listAnnotations(exchange.params.projectId, exchange.params.runId, annotationFilter(exchange)),
    ),
    reading(`${RUNS}/:runId/logs`, (exchange) =>
      domain.listLogs(exchange.params.projectId, exchange.params.runId, readQuery(exchange)),
    ),
    resourceOf(`${RUNS}/:runId/cancel`, 'POST', async (exchange) => {
      checkNoRun(await guard(exchange, 'write'))
      return jsonAnswer(200, await runs.cancel(exchange.params.projectId, exchange.params.runId))
    }),
    resourceOf(`${RUNS}/:runId/rerun`, 'POST', async (exchange) => {
      const startedBy = await guard(exchange, 'write')
      checkNoRun(startedBy)
      return jsonAnswer(201, await runs.rerun(exchange.params.projectId, exchange.params.runId, { startedBy }))
    }),
  ]
}

/** A path with one method. */
export function resourceOf<H>(
  path: string,
  method: Method,
  operation: NonNullable<Resource<H>['operations']['GET']>,
): Resource<H> {
  return { path, check: checkParams, operations: { [method]: operation } }
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
