import { StowageError } from '../../errors.ts'
import type { Exchange } from '../../http/exchange.ts'
import type { Resource } from '../../http/router.ts'
import type { UnreferencedCursor } from '../../object/collection.ts'
import { quoted } from '../../object/id.ts'
import type { ProjectUpkeep } from '../../service/project-upkeep.ts'
import { checkNoRun } from '../domain/run-access.ts'
import { checkPage } from '../schemas/checks.ts'
import { COLLECT_OBJECTS_REQUEST, COLLECT_REQUEST, COMPACT_REQUEST } from '../schemas/shapes/upkeep.ts'
import type { Page, UnreferencedObject } from '../schemas/types.ts'
import type { HttpDeps } from './deps.ts'
import { checkParams, jsonAnswer, readFlag, readJson, readOptionalJson, readQuery } from './json.ts'
import { longWorkAnswer } from './long-work.ts'

const PROJECT = '/api/v1/projects/:projectId'
const CURSOR = /^([0-9a-f]{1,8})\.([0-9a-f]{1,12})\.([0-9a-f]{1,8})$/

/** Collection of unreferenced objects, its undo, and compaction. */
export function upkeepResources<H>(deps: HttpDeps<H>): readonly Resource<H>[] {
  const {
    context: { guard, logger },
    limits: { bodyBytesMax },
  } = deps
  type Asked = Exchange<H>
  const long = <R>(
    path: string,
    begin: (exchange: Asked, upkeep: ProjectUpkeep) => Promise<(onProgress: (progress: object) => void) => Promise<R>>,
  ): Resource<H> => ({
    path: `${PROJECT}/${path}`,
    check: checkParams,
    operations: {
      POST: async (exchange) => {
        checkNoRun(await guard(exchange, 'write'))
        const { signal, params } = exchange
        const work = await begin(exchange, deps.context.upkeepOf(params.projectId))
        const onError = (error: StowageError): void =>
          logger?.error({ err: error, projectId: params.projectId }, `${path} failed after its answer began`)
        return longWorkAnswer({ work, signal, onError })
      },
    },
  })
  return [
    long('collect', async (exchange, upkeep) => {
      const request = await readOptionalJson(exchange, bodyBytesMax, COLLECT_REQUEST)
      return (onProgress) => upkeep.collect({ ...request, onProgress, signal: exchange.signal })
    }),
    long('restore-collected', async ({ signal }, upkeep) => {
      return (onProgress) => upkeep.restoreCollected({ onProgress, signal })
    }),
    long('compact', async (exchange, upkeep) => {
      const request = await readOptionalJson(exchange, bodyBytesMax, COMPACT_REQUEST)
      return (onProgress) => upkeep.compact({ ...request, onProgress, signal: exchange.signal })
    }),
    long('unreferenced/collect', async (exchange, upkeep) => {
      const { ids, ...request } = await readJson(exchange, bodyBytesMax, COLLECT_OBJECTS_REQUEST)
      return (onProgress) => upkeep.collectObjects(ids, { ...request, onProgress, signal: exchange.signal })
    }),
    unreferencedResource(deps),
  ]
}

function unreferencedResource<H>({ context: { guard, upkeepOf, epochs } }: HttpDeps<H>): Resource<H> {
  const epochMs = epochs?.epochMs ?? 0
  return {
    path: `${PROJECT}/unreferenced`,
    check: checkParams,
    operations: {
      GET: async (exchange) => {
        await guard(exchange, 'read')
        const { limit, cursor, tops } = readQuery(exchange, 'tops')
        checkPage({ limit })
        const { objects, next } = await upkeepOf(exchange.params.projectId).unreferenced({
          signal: exchange.signal,
          limit,
          after: cursor === undefined ? undefined : parseCursor(cursor),
          topsOnly: readFlag('tops', tops),
        })
        const page: Page<UnreferencedObject> = {
          items: objects.map(({ ageEpochs, ...object }) => ({ ...object, ageMs: ageEpochs * epochMs })),
          cursor: next === undefined ? null : cursorText(next),
        }
        return jsonAnswer(200, page)
      },
    },
  }
}

function parseCursor(text: string): UnreferencedCursor {
  const [, ...parts] = CURSOR.exec(text) ?? []
  if (parts.length === 0)
    throw new StowageError('invalid_request', `cursor is ${quoted(text)}; it must be the "cursor" of an earlier page`)
  const [generation, sequence, ordinal] = parts.map((part) => Number.parseInt(part, 16))
  return { generation, sequence, ordinal }
}

function cursorText({ generation, sequence, ordinal }: UnreferencedCursor): string {
  return [generation, sequence, ordinal].map((part) => part.toString(16)).join('.')
}
