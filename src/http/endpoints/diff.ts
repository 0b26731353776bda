import { ACCEPT_HEADER, BLOCKS_MEDIA_TYPE } from '../../blocks/ready-blocks.ts'
import { decodeIdList } from '../../decode/id-list.ts'
import type { Limits } from '../../limits.ts'
import type { ObjectPresence } from '../../object/graph-store.ts'
import type { Guard } from '../core.ts'
import type { Operation } from '../exchange.ts'
import { presenceBytes, presenceText } from '../presence-text.ts'
import { idListSource } from '../body-sources.ts'

/**
 * `POST /api/diff/{projectId}`: which of these ids are held. Answers JSON regardless of `Accept`, since clients that
 * want lines ask here too.
 */
export function diffOperation<H>(deps: {
  readonly store: ObjectPresence
  readonly guard: Guard<H>
  readonly limits: Limits
}): Operation<H> {
  return async (exchange) => {
    const { signal, params, memory } = exchange
    await deps.guard(exchange, 'write')
    const ids = await decodeIdList(idListSource(exchange.body), deps.limits, { signal, memory })
    const held = await deps.store.has(params.projectId, ids, { signal })
    return {
      status: 200,
      headers: {
        'Content-Type': 'application/json; charset=utf-8',
        'Cache-Control': 'private, no-store',
        [ACCEPT_HEADER]: BLOCKS_MEDIA_TYPE,
      },
      body: presenceText(ids, held),
      length: presenceBytes(ids, held),
    }
  }
}
