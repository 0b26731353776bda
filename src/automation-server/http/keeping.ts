import { StowageError } from '../../errors.ts'
import type { Resource } from '../../http/router.ts'
import { quoted } from '../../object/id.ts'
import type { PinStore } from '../../object/roots.ts'
import { NEW_PIN } from '../schemas/shapes/keeping.ts'
import type { ProjectUsage } from '../schemas/types.ts'
import type { HttpDeps } from './deps.ts'
import { handlersOf, resource } from './handlers.ts'
import { readJson } from './json.ts'

const PROJECT = '/api/v1/projects/:projectId'

/** Pins, and the usage of a project. */
export function keepingResources<H>({ context, limits }: HttpDeps<H>): readonly Resource<H>[] {
  const { pins, usage, holds } = context
  const { reading, changing, removing } = handlersOf(context)
  return [
    resource(`${PROJECT}/pins`, {
      GET: reading(async ({ params }) => ({ items: await needed(pins).list(params.projectId) })),
      POST: changing(async (exchange) => {
        const wanted = await readJson(exchange, limits.bodyBytesMax, NEW_PIN)
        return needed(pins).add(exchange.params.projectId, wanted)
      }, 201),
    }),
    resource(`${PROJECT}/pins/:pinId`, {
      DELETE: removing(({ params }) => needed(pins).remove(params.projectId, params.pinId)),
    }),
    resource(`${PROJECT}/usage`, {
      GET: reading(async ({ params: { projectId }, signal }) => {
        if (await holds(projectId)) return usageView(await usage(projectId, signal))
        throw new StowageError(
          'not_found',
          `there is no project ${quoted(projectId)}: the service holds neither objects nor models of it`,
        )
      }),
    }),
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
