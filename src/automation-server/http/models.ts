import { bearerToken } from '../../access/bearer.ts'
import type { Principal } from '../../access/access.ts'
import type { Exchange } from '../../http/exchange.ts'
import type { Resource } from '../../http/router.ts'
import { RunPrincipal } from '../domain/run-access.ts'
import { MODEL_CHANGE, NEW_MODEL, NEW_VERSION, PRUNE_REQUEST, VERSION_CHANGE } from '../schemas/shapes/models.ts'
import { checkIdempotencyKey } from '../schemas/checks.ts'
import type { DeletableFilter } from '../schemas/types.ts'
import type { HttpDeps } from './deps.ts'
import { handlersOf, resource } from './handlers.ts'
import { readFlag, readJson, readOptionalJson, readQuery } from './json.ts'

const MODELS = '/api/v1/projects/:projectId/models'
const MODEL = `${MODELS}/:modelId`

/** Models and their versions. */
export function modelResources<H>(deps: HttpDeps<H>): readonly Resource<H>[] {
  const { models, deletion, retention } = deps.domain
  const { bodyBytesMax } = deps.limits
  const { reading, writing, changing } = handlersOf(deps.context)
  const clean = cleaner(deps.domain)
  return [
    resource(MODELS, {
      GET: reading((exchange) => models.list(exchange.params.projectId, deletable(exchange))),
      POST: writing(async (exchange, principal) => {
        const wanted = await clean(principal, exchange, await readJson(exchange, bodyBytesMax, NEW_MODEL))
        return models.create(exchange.params.projectId, wanted)
      }, 201),
    }),
    resource(MODEL, {
      GET: reading(({ params }) => models.get(params.projectId, params.modelId)),
      PATCH: changing(async (exchange) => {
        const { projectId, modelId } = exchange.params
        return models.change(projectId, modelId, await readJson(exchange, bodyBytesMax, MODEL_CHANGE))
      }),
      DELETE: changing(({ params }) => deletion.deleteModel(params.projectId, params.modelId)),
    }),
    resource(`${MODEL}/prune`, {
      POST: changing(async (exchange) => {
        const { projectId, modelId } = exchange.params
        const wanted = await readOptionalJson(exchange, bodyBytesMax, PRUNE_REQUEST)
        return retention.prune(projectId, modelId, wanted, exchange.signal)
      }),
    }),
    resource(`${MODEL}/restore`, {
      POST: changing(({ params }) => deletion.restoreModel(params.projectId, params.modelId)),
    }),
    ...versionResources(deps),
  ]
}

function versionResources<H>({ domain, context, limits: { bodyBytesMax } }: HttpDeps<H>): readonly Resource<H>[] {
  const { versions, deletion } = domain
  const { reading, writing, changing } = handlersOf(context)
  const clean = cleaner(domain)
  return [
    resource(`${MODEL}/versions`, {
      GET: reading((exchange) =>
        versions.list(exchange.params.projectId, exchange.params.modelId, deletable(exchange)),
      ),
      POST: writing(async (exchange, principal) => {
        const idempotencyKey = exchange.headers.get('idempotency-key') ?? undefined
        checkIdempotencyKey(idempotencyKey)
        const { signal, params } = exchange
        const wanted = await clean(principal, exchange, await readJson(exchange, bodyBytesMax, NEW_VERSION))
        // The version is known as the run's own, too: that is how loops are refused.
        const run =
          principal instanceof RunPrincipal
            ? { projectId: principal.projectId, runId: principal.runId, attempt: principal.attempt, idempotencyKey }
            : undefined
        const options = { signal, ...(run === undefined ? {} : { run }) }
        return domain.createVersion(params.projectId, params.modelId, wanted, options)
      }, 201),
    }),
    resource(`${MODEL}/versions/:versionId`, {
      GET: reading(({ params }) => versions.get(params.projectId, params.modelId, params.versionId)),
      PATCH: changing(async (exchange) => {
        const { projectId, modelId, versionId } = exchange.params
        const change = await readJson(exchange, bodyBytesMax, VERSION_CHANGE)
        return versions.change(projectId, modelId, versionId, change)
      }),
      DELETE: changing(({ params }) => deletion.deleteVersion(params.projectId, params.modelId, params.versionId)),
    }),
    resource(`${MODEL}/versions/:versionId/restore`, {
      POST: changing(({ params }) => deletion.restoreVersion(params.projectId, params.modelId, params.versionId)),
    }),
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
