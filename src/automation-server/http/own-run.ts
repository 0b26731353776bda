import { bearerToken } from '../../access/bearer.ts'
import { StowageError } from '../../errors.ts'
import type { Exchange } from '../../http/exchange.ts'
import type { Resource } from '../../http/router.ts'
import { quoted } from '../../object/id.ts'
import { ownRun, type RunPrincipal } from '../domain/run-access.ts'
import { NEW_RUN_VERSION } from '../schemas/shapes/models.ts'
import { RUN_REPORT } from '../schemas/shapes/reports.ts'
import { ConcurrencyLimit } from '../../async/concurrency-limit.ts'
import type { HttpDeps } from './deps.ts'
import { handlersOf, resource } from './handlers.ts'
import { readJson } from './json.ts'
import { RUNS } from './runs.ts'

/** Reports are large, and a run sends them one after the other: several arrive only after a connection broke. */
const REPORTS_AT_ONCE_MAX = 4

/** A file is stored and sent as it arrives. Nobody would know of an encoding later. Throws `unsupported_media_type`. */
function checkPlain({ encoding }: Pick<Exchange<unknown>['body'], 'encoding'>): void {
  if (encoding === undefined || encoding.toLowerCase() === 'identity') return
  throw new StowageError(
    'unsupported_media_type',
    `the body's Content-Encoding is ${quoted(encoding)}; a file is sent as it is to be kept, without one`,
  )
}

/** The requests of a run itself, with its own token. */
export function ownRunResources<H>({ domain, context, limits }: HttpDeps<H>): readonly Resource<H>[] {
  const { writing } = handlersOf(context)
  const posted = (
    path: string,
    answer: (exchange: Exchange<H>, run: RunPrincipal) => unknown,
    status?: 200 | 201,
  ): Resource<H> => {
    const POST = writing((exchange, principal) => {
      const { projectId, runId } = exchange.params
      return answer(exchange, ownRun(principal, projectId, runId))
    }, status)
    return resource(`${RUNS}/:runId/${path}`, { POST })
  }
  const clean = <T>({ headers, params: { projectId, runId } }: Exchange<H>, said: T): Promise<T> =>
    domain.runSecrets.redacted(said, { projectId, runId, token: bearerToken(headers) })
  const reports = new ConcurrencyLimit(REPORTS_AT_ONCE_MAX, 'reports of this run are being read')
  const artifacts = new ConcurrencyLimit(limits.artifactsMax, 'artifacts of this run are being read')
  return [
    posted('report', async (exchange, { projectId, runId, attempt }) => {
      await reports.run(runId, async () => {
        const report = await clean(exchange, await readJson(exchange, limits.reportBytesMax, RUN_REPORT))
        await domain.reports.take(projectId, runId, report, attempt)
      })
      return {}
    }),
    posted('lease', (_exchange, { projectId, runId, attempt }) => domain.reports.lease(projectId, runId, attempt)),
    posted(
      'versions',
      async (exchange, principal) => {
        const { projectId, runId, attempt } = principal
        const run = { projectId, runId, attempt, idempotencyKey: exchange.headers.get('idempotency-key') ?? undefined }
        const sent = await clean(exchange, await readJson(exchange, limits.bodyBytesMax, NEW_RUN_VERSION))
        const { projectId: target = projectId, modelId, ...wanted } = sent
        if (!principal.mayWrite(target))
          throw new StowageError('forbidden', 'the run may not write in that project; its automation can name it')
        const { id } = await domain.createVersion(target, modelId, wanted, { run, signal: exchange.signal })
        return { id }
      },
      201,
    ),
    posted(
      'artifacts',
      async (exchange, { projectId, runId, attempt }) => {
        const { body, query, headers, signal } = exchange
        checkPlain(body)
        const name = query.get('name')
        if (name === null)
          throw new StowageError('invalid_request', 'the parameter "name" is missing: the display name of the artifact')
        const file = {
          attempt,
          name: await clean(exchange, name),
          content: body.bytes(),
          idempotencyKey: headers.get('idempotency-key') ?? undefined,
          sizeHintBytes: body.length,
        }
        return artifacts.run(runId, () => domain.artifacts.store(projectId, runId, file, signal))
      },
      201,
    ),
  ]
}
