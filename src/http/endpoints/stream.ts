import type { DeflatePool } from '../../compression/deflate-pool.ts'
import { decodeObjectStreamRequest } from '../../decode/id-list.ts'
import type { Limits } from '../../limits.ts'
import type { ObjectSelector } from '../../object/graph-store.ts'
import type { Guard } from '../core.ts'
import type { Operation } from '../exchange.ts'
import { negotiateCoding } from '../negotiate.ts'
import { checkComplete, releasing, wholeAnswer } from '../selection-answer.ts'
import { idListSource } from '../body-sources.ts'

/** How long a response may be silent before a client that asked for heartbeats receives one. */
const HEARTBEAT_INTERVAL_MS = 5_000
const HEARTBEAT_LINE = Buffer.from(':heartbeat\n')

export interface StreamDeps<H> {
  readonly store: ObjectSelector
  readonly guard: Guard<H>
  readonly limits: Limits
  readonly compressor: DeflatePool
  readonly heartbeatIntervalMs?: number
}

/** `POST /api/v2/projects/{projectId}/object-stream`: the objects of a list as tab-separated lines, all of their attributes or some. */
export function streamOperation<H>(deps: StreamDeps<H>): Operation<H> {
  const { store, guard, limits, compressor } = deps
  const beat = { intervalMs: deps.heartbeatIntervalMs ?? HEARTBEAT_INTERVAL_MS, line: HEARTBEAT_LINE }
  return async (exchange) => {
    const { params, headers, signal, body, memory } = exchange
    await guard(exchange, 'read')
    const coding = negotiateCoding(headers)
    const { ids, mask } = await decodeObjectStreamRequest(idListSource(body), limits, { signal, memory })
    const heartbeat = headers.get('x-speckle-object-stream-heartbeats') === 'true' ? beat : undefined
    const selection = await store.select(params.projectId, ids, { signal })
    if (selection.keepsIds !== true) memory.free(memory.heldBytes)
    exchange.trace.selected(selection)
    return releasing(selection, memory, async () => {
      await checkComplete(exchange, selection)
      return wholeAnswer(selection, { encoding: { format: 'text', coding, mask, heartbeat }, compressor }, signal)
    })
  }
}
