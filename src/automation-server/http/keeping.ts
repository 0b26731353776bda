import { StowageError } from '../../errors.ts'
import type { Resource } from '../../http/router.ts'
import type { PinStore } from '../../object/roots.ts'
import { checkNoRun } from '../domain/run-access.ts'
import { NEW_PIN } from '../schemas/shapes/keeping.ts'
import type { ProjectUsage } from '../schemas/types.ts'
import type { HttpDeps } from './deps.ts'
import { checkParams, jsonAnswer, readJson } from './json.ts'

const PROJECT = '/api/v1/projects/:projectId'

/** Pins, and the usage of a project. */
export function keepingResources<H>({ context: { guard, pins, usage }, limits }: HttpDeps<H>): readonly Resource<H>[] {
  return [
    {
      path: `${PROJECT}/pins`,
      check: checkParams,
      operations: {
        GET: async (exchange) => {
          await guard(exchange, 'read')
          return jsonAnswer(200, { items: await needed(pins).list(exchange.params.projectId) })
        },
        POST: async (exchange) => {
          checkNoRun(await guard(exchange, 'write'))
          const wanted = await readJson(exchange, limits.bodyBytesMax, NEW_PIN)
          return jsonAnswer(201, await needed(pins).add(exchange.params.projectId, wanted))
        },
      },
    },
    {
      path: `${PROJECT}/pins/:pinId`,
      check: checkParams,
      operations: {
        DELETE: async (exchange) => {
          checkNoRun(await guard(exchange, 'write'))
          await needed(pins).remove(exchange.params.projectId, exchange.params.pinId)
          return { status: 204, headers: { 'Cache-Control': 'private, no-store' } }
        },
      },
    },
    {
      path: `${PROJECT}/usage`,
      check: checkParams,
      operations: {
        GET: async (exchange) => {
          await guard(exchange, 'read')
          return jsonAnswer(200, usageView(await usage(exchange.params.projectId, exchange.signal)))
        },
      },
    },
  ]
}

/** The counts of the core, in the terms of the API: the groups of roots are models. */
export function usageView({
  groups,
  roots,
  ...totals
}: Awaited<ReturnType<HttpDeps<never>['context']['usage']>>): ProjectUsage {
  return {
    ...totals,
    models: groups.map(({ groupId, roots: versions, ...share }) => ({ modelId: groupId, versions, ...share })),
    roots: roots.map(({ kind, id, groupId, rootObjectId, ...share }) => ({
      kind,
      id,
      modelId: groupId,
      rootObjectId,
      ...share,
    })),
  }
}

function needed(pins: PinStore | undefined): PinStore {
  if (pins === undefined) throw new StowageError('not_supported', 'pins need a storage backend')
  return pins
}
