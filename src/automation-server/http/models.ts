import { bearerToken } from '../../access/bearer.ts'
import type { Principal } from '../../access/access.ts'
import type { Exchange } from '../../http/exchange.ts'
import type { Resource } from '../../http/router.ts'
import { RunPrincipal } from '../run-access.ts'
import { nullable, object, optional, text } from '../shape.ts'
import type { HttpDeps } from './deps.ts'
import { checkParams, jsonAnswer, readJson, readQuery } from './json.ts'

const MODELS = '/api/v1/projects/:projectId/models'
const readModel = object({ name: text })
const readVersion = object({ rootObjectId: text, message: text, source: optional(nullable(text)) })

/** Models and their versions. */
export function modelResources<H>({ domain, context: { guard }, limits }: HttpDeps<H>): readonly Resource<H>[] {
  /** Whichever path a run takes, it tells no secrets. */
  const clean = async <T>(principal: Principal, { headers }: Exchange<H>, said: T): Promise<T> =>
    principal instanceof RunPrincipal
      ? domain.runSecrets.scrubbed(said, {
          projectId: principal.projectId,
          runId: principal.runId,
          token: bearerToken(headers),
        })
      : said
  return [
    {
      path: MODELS,
      check: checkParams,
      operations: {
        GET: async (exchange) => {
          await guard(exchange, 'read')
          return jsonAnswer(200, await domain.models.list(exchange.params.projectId, readQuery(exchange)))
        },
        POST: async (exchange) => {
          const principal = await guard(exchange, 'write')
          const wanted = await clean(principal, exchange, await readJson(exchange, limits.bodyBytesMax, readModel))
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
      },
    },
    {
      path: `${MODELS}/:modelId/versions`,
      check: checkParams,
      operations: {
        GET: async (exchange) => {
          await guard(exchange, 'read')
          const { projectId, modelId } = exchange.params
          return jsonAnswer(200, await domain.versions.list(projectId, modelId, readQuery(exchange)))
        },
        POST: async (exchange) => {
          const principal = await guard(exchange, 'write')
          const {
            signal,
            params: { projectId, modelId },
          } = exchange
          const wanted = await clean(principal, exchange, await readJson(exchange, limits.bodyBytesMax, readVersion))
          // The version is known as the run's own, too: that is how loops are refused.
          const run =
            principal instanceof RunPrincipal
              ? {
                  runId: principal.runId,
                  attempt: principal.attempt,
                  idempotencyKey: exchange.headers.get('idempotency-key') ?? undefined,
                }
              : undefined
          return jsonAnswer(
            201,
            await domain.createVersion(projectId, modelId, wanted, { signal, ...(run === undefined ? {} : { run }) }),
          )
        },
      },
    },
    {
      path: `${MODELS}/:modelId/versions/:versionId`,
      check: checkParams,
      operations: {
        GET: async (exchange) => {
          await guard(exchange, 'read')
          const { projectId, modelId, versionId } = exchange.params
          return jsonAnswer(200, await domain.versions.get(projectId, modelId, versionId))
        },
      },
    },
  ]
}
