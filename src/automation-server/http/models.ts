import { bearerToken } from '../../access/bearer.ts'
import type { Principal } from '../../access/access.ts'
import type { Exchange } from '../../http/exchange.ts'
import type { Resource } from '../../http/router.ts'
import { checkNoRun, RunPrincipal } from '../domain/run-access.ts'
import { MODEL_CHANGE, NEW_MODEL, NEW_VERSION, PRUNE_REQUEST, VERSION_CHANGE } from '../schemas/shapes/models.ts'
import { checkIdempotencyKey } from '../schemas/checks.ts'
import type { DeletableFilter } from '../schemas/types.ts'
import type { HttpDeps } from './deps.ts'
import { checkParams, jsonAnswer, readFlag, readJson, readOptionalJson, readQuery } from './json.ts'

const MODELS = '/api/v1/projects/:projectId/models'

/** Models and their versions. */
export function modelResources<H>(deps: HttpDeps<H>): readonly Resource<H>[] {
  const {
    domain,
    context: { guard },
    limits,
  } = deps
  const clean = cleaner(domain)
  return [
    {
      path: MODELS,
      check: checkParams,
      operations: {
        GET: async (exchange) => {
          await guard(exchange, 'read')
          return jsonAnswer(200, await domain.models.list(exchange.params.projectId, deletable(exchange)))
        },
        POST: async (exchange) => {
          const principal = await guard(exchange, 'write')
          const wanted = await clean(principal, exchange, await readJson(exchange, limits.bodyBytesMax, NEW_MODEL))
          return jsonAnswer(201, await domain.models.create(exchange.params.projectId, wanted))
        },
      },
    },
    {
      path: `${MODELS}/:modelId`,
      check: checkParams,
      operations: {
        GET: async (exchange) => {
          await guard(exchange, 'read')
          return jsonAnswer(200, await domain.models.get(exchange.params.projectId, exchange.params.modelId))
        },
        PATCH: async (exchange) => {
          checkNoRun(await guard(exchange, 'write'))
          const { projectId, modelId } = exchange.params
          const change = await readJson(exchange, limits.bodyBytesMax, MODEL_CHANGE)
          return jsonAnswer(200, await domain.models.change(projectId, modelId, change))
        },
        DELETE: async (exchange) => {
          checkNoRun(await guard(exchange, 'write'))
          const { projectId, modelId } = exchange.params
          return jsonAnswer(200, await domain.deletion.deleteModel(projectId, modelId))
        },
      },
    },
    {
      path: `${MODELS}/:modelId/prune`,
      check: checkParams,
      operations: {
        POST: async (exchange) => {
          checkNoRun(await guard(exchange, 'write'))
          const { projectId, modelId } = exchange.params
          const wanted = await readOptionalJson(exchange, limits.bodyBytesMax, PRUNE_REQUEST)
          return jsonAnswer(200, await domain.retention.prune(projectId, modelId, wanted, exchange.signal))
        },
      },
    },
    {
      path: `${MODELS}/:modelId/restore`,
      check: checkParams,
      operations: {
        POST: async (exchange) => {
          checkNoRun(await guard(exchange, 'write'))
          const { projectId, modelId } = exchange.params
          return jsonAnswer(200, await domain.deletion.restoreModel(projectId, modelId))
        },
      },
    },
    ...versionResources(deps),
  ]
}

function versionResources<H>(deps: HttpDeps<H>): readonly Resource<H>[] {
  const {
    domain,
    context: { guard },
    limits,
  } = deps
  const clean = cleaner(domain)
  return [
    {
      path: `${MODELS}/:modelId/versions`,
      check: checkParams,
      operations: {
        GET: async (exchange) => {
          await guard(exchange, 'read')
          const { projectId, modelId } = exchange.params
          return jsonAnswer(200, await domain.versions.list(projectId, modelId, deletable(exchange)))
        },
        POST: async (exchange) => {
          const principal = await guard(exchange, 'write')
          const idempotencyKey = exchange.headers.get('idempotency-key') ?? undefined
          checkIdempotencyKey(idempotencyKey)
          const {
            signal,
            params: { projectId, modelId },
          } = exchange
          const wanted = await clean(principal, exchange, await readJson(exchange, limits.bodyBytesMax, NEW_VERSION))
          // The version is known as the run's own, too: that is how loops are refused.
          const run =
            principal instanceof RunPrincipal
              ? { projectId: principal.projectId, runId: principal.runId, attempt: principal.attempt, idempotencyKey }
              : undefined
          return jsonAnswer(
            201,
            await domain.createVersion(projectId, modelId, wanted, { signal, ...(run === undefined ? {} : { run }) }),
          )
        },
      },
    },
    ...versionResource(deps),
  ]
}

function versionResource<H>({ domain, context: { guard }, limits }: HttpDeps<H>): readonly Resource<H>[] {
  return [
    {
      path: `${MODELS}/:modelId/versions/:versionId`,
      check: checkParams,
      operations: {
        GET: async (exchange) => {
          await guard(exchange, 'read')
          const { projectId, modelId, versionId } = exchange.params
          return jsonAnswer(200, await domain.versions.get(projectId, modelId, versionId))
        },
        PATCH: async (exchange) => {
          checkNoRun(await guard(exchange, 'write'))
          const { projectId, modelId, versionId } = exchange.params
          const change = await readJson(exchange, limits.bodyBytesMax, VERSION_CHANGE)
          return jsonAnswer(200, await domain.versions.change(projectId, modelId, versionId, change))
        },
        DELETE: async (exchange) => {
          checkNoRun(await guard(exchange, 'write'))
          const { projectId, modelId, versionId } = exchange.params
          return jsonAnswer(200, await domain.deletion.deleteVersion(projectId, modelId, versionId))
        },
      },
    },
    {
      path: `${MODELS}/:modelId/versions/:versionId/restore`,
      check: checkParams,
      operations: {
        POST: async (exchange) => {
          checkNoRun(await guard(exchange, 'write'))
          const { projectId, modelId, versionId } = exchange.params
          return jsonAnswer(200, await domain.deletion.restoreVersion(projectId, modelId, versionId))
        },
      },
    },
  ]
}

/** Which part of a list, and whether deleted ones are in it. */
function deletable(exchange: Pick<Exchange<unknown>, 'query'>): DeletableFilter {
  const { deleted, ...request } = readQuery(exchange, 'deleted')
  return { ...request, deleted: readFlag('deleted', deleted) }
}

/** A run reveals no secrets on any path. */
function cleaner<H>({ runSecrets }: HttpDeps<H>['domain']) {
  return async <T>(principal: Principal, { headers }: Exchange<H>, said: T): Promise<T> =>
    principal instanceof RunPrincipal
      ? runSecrets.redacted(said, {
          projectId: principal.projectId,
          runId: principal.runId,
          token: bearerToken(headers),
        })
      : said
}
