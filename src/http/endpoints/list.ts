import type { DeflatePool } from '../../compression/deflate-pool.ts'
import { decodeIdList } from '../../decode/id-list.ts'
import type { Limits } from '../../limits.ts'
import type { ObjectSelector } from '../../object/graph-store.ts'
import type { Guard } from '../core.ts'
import type { Operation } from '../exchange.ts'
import { negotiateCoding, negotiateFormat } from '../negotiate.ts'
import { checkComplete, releasing, wholeAnswer } from '../selection-answer.ts'
import { idListSource } from '../body-sources.ts'

export interface ListDeps<H> {
  readonly store: ObjectSelector
  readonly guard: Guard<H>
  readonly limits: Limits
  readonly compressor: DeflatePool
}

/** `POST /api/getobjects/{projectId}`: the objects of a list that are held. */
export function listOperation<H>(deps: ListDeps<H>): Operation<H> {
  const { store, guard, limits, compressor } = deps
  return async (exchange) => {
    const { params, headers, signal, body, memory } = exchange
    await guard(exchange, 'read')
    const encoding = { format: negotiateFormat(headers), coding: negotiateCoding(headers) }
    const ids = await decodeIdList(idListSource(body), limits, { signal, memory })
    const selection = await store.select(params.projectId, ids, { signal })
    if (selection.keepsIds !== true) memory.free(memory.heldBytes)
    exchange.trace.selected(selection)
    return releasing(selection, memory, async () => {
      await checkComplete(exchange, selection)
      return wholeAnswer(selection, { encoding, compressor }, signal)
    })
  }
}
