import type { Principal } from '../../access/access.ts'
import { principalKey } from '../../access/principal-key.ts'
import { ConcurrencyLimit } from '../../async/concurrency-limit.ts'
import type { Answer } from '../../http/exchange.ts'
import type { Resource } from '../../http/router.ts'
import { parsePosition, positionText, type RunEvent, runEvents } from '../domain/run-events.ts'
import { isFinal } from '../domain/run-record.ts'
import type { HttpDeps } from './deps.ts'
import { resource } from './handlers.ts'
import { RUNS } from './runs.ts'

/** How soon a browser reconnects after a connection broke. */
const RETRY_MS = 2_000
/** Changes are signaled; a signal is missed only when the storage fails. */
const POLL_MS = 5_000
const HEARTBEAT_MS = 15_000
const BEGINNING = { revision: 0, lines: 0 }

/**
 * Server-sent events (WHATWG HTML, section 9.2): `status`, `progress`, `annotations`, `outputs` and `log`.
 * `Last-Event-ID` resumes. Ends after the final status; a client that reconnects then has seen everything and gets 204,
 * which tells a browser to stay away.
 */
export function eventResources<H>({ domain, context: { guard }, limits }: HttpDeps<H>): readonly Resource<H>[] {
  const all = new ConcurrencyLimit(limits.eventStreamsMax, 'streams of events are open')
  const each = new ConcurrencyLimit(limits.eventStreamsPerPrincipalMax, 'streams of events of this account are open')
  const entered = (principal: Principal): (() => void) => {
    const leaveEach = each.enter(principalKey(principal))
    try {
      const leaveAll = all.enter('')
      return () => {
        leaveAll()
        leaveEach()
      }
    } catch (error) {
      leaveEach()
      throw error
    }
  }
  return [
    resource(`${RUNS}/:runId/events`, {
      GET: async (exchange): Promise<Answer> => {
        const principal = await guard(exchange, 'read')
        const {
          headers,
          signal,
          params: { projectId, runId },
        } = exchange
        const last = headers.get('last-event-id')
        const seen = last === null || last === '' ? BEGINNING : parsePosition(last)
        const {
          stored: { value: run },
        } = await domain.changes.found(projectId, runId)
        if (isFinal(run.status) && run.revision <= seen.revision && run.logLines <= seen.lines)
          return { status: 204, headers: { 'Cache-Control': 'private, no-store' } }
        const leave = entered(principal)
        return {
          status: 200,
          headers: {
            'Content-Type': 'text/event-stream; charset=utf-8',
            'Cache-Control': 'private, no-store',
            'X-Accel-Buffering': 'no',
          },
          body: written(
            runEvents(domain, { projectId, runId }, seen, { signal, pollMs: POLL_MS, heartbeatMs: HEARTBEAT_MS }),
          ),
          release: leave,
        }
      },
    }),
  ]
}

async function* written(batches: AsyncIterable<readonly RunEvent[]>): AsyncGenerator<Uint8Array> {
  yield Buffer.from(`retry: ${RETRY_MS}\n\n`)
  for await (const batch of batches)
    yield Buffer.from(batch.length === 0 ? ': alive\n\n' : batch.map(eventText).join(''))
}

function eventText({ type, data, position }: RunEvent): string {
  const id = position === undefined ? '' : `id: ${positionText(position)}\n`
  return `event: ${type}\n${id}data: ${JSON.stringify(data)}\n\n`
}
