import { StowageError } from '../../errors.ts'
import type { Exchange } from '../../http/exchange.ts'
import type { Resource } from '../../http/router.ts'
import type { RunClaims } from '../domain/run-tokens.ts'
import { ownRun } from '../run-access.ts'
import { object, type Reader, text } from '../shape.ts'
import type { HttpDeps } from './deps.ts'
import { jsonAnswer, readJson } from './json.ts'
import { resourceOf, RUNS } from './runs.ts'

const anything: Reader<unknown> = (value) => value
const readVersion = object({ modelId: text, rootObjectId: text, message: text })

/** What a run itself asks for, with its own token. */
export function ownRunResources<H>({ domain, context: { guard }, limits }: HttpDeps<H>): readonly Resource<H>[] {
  const own = async (exchange: Exchange<H>): Promise<RunClaims> => ownRun(await guard(exchange, 'write'), exchange.params.projectId, exchange.params.runId)
  return [
    resourceOf(`${RUNS}/:runId/report`, 'POST', async (exchange) => {
      const { projectId, runId, attempt } = await own(exchange)
      await domain.reports.take(projectId, runId, await readJson(exchange, limits.reportBytesMax, anything), attempt)
      return jsonAnswer(200, {})
    }),
    resourceOf(`${RUNS}/:runId/lease`, 'POST', async (exchange) => {
      const { projectId, runId } = await own(exchange)
      return jsonAnswer(200, await domain.reports.lease(projectId, runId))
    }),
    resourceOf(`${RUNS}/:runId/versions`, 'POST', async (exchange) => {
      const { projectId, runId, attempt } = await own(exchange)
      const run = { runId, attempt, idempotencyKey: exchange.headers.get('idempotency-key') ?? undefined }
      const { modelId, ...wanted } = await readJson(exchange, limits.bodyBytesMax, readVersion)
      const { id } = await domain.createVersion(projectId, modelId, wanted, { run, signal: exchange.signal })
      return jsonAnswer(201, { id })
    }),
    resourceOf(`${RUNS}/:runId/artifacts`, 'POST', async (exchange) => {
      const { projectId, runId, attempt } = await own(exchange)
      const { body, query, headers, signal } = exchange
      const name = query.get('name')
      if (name === null) throw new StowageError('invalid_request', 'the parameter "name" is missing: the display name of the artifact')
      const file = { attempt, name, content: body.bytes(), idempotencyKey: headers.get('idempotency-key') ?? undefined, sizeHint: body.length }
      return jsonAnswer(201, await domain.artifacts.store(projectId, runId, file, signal))
    }),
  ]
}
