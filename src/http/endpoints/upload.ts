import { ACCEPT_HEADER, BLOCKS_MEDIA_TYPE } from '../../blocks/ready-blocks.ts'
import { isDeltaUpload } from '../../decode/decode-upload.ts'
import type { Limits } from '../../limits.ts'
import { tooLarge } from '../../limits.ts'
import type { Logger } from '../../logger.ts'
import type { ObjectSelector, ObjectWriter } from '../../object/graph-store.ts'
import { uploadObjects } from '../../operations/upload-objects.ts'
import type { Guard } from '../core.ts'
import type { Operation } from '../exchange.ts'
import { uploadSource } from '../body-sources.ts'
import { uploadStatusHint } from '../upload-status-hint.ts'

export interface UploadDeps<H> {
  readonly store: ObjectWriter & ObjectSelector
  readonly guard: Guard<H>
  readonly limits: Limits
  /** 201 for clients that insist on it. */
  readonly status: 200 | 201
  readonly logger: Logger | undefined
}

/** `POST /objects/{projectId}`: stores a batch of objects, all or nothing. */
export function uploadOperation<H>(deps: UploadDeps<H>): Operation<H> {
  const { store, guard, limits, status, logger } = deps
  const hint = uploadStatusHint(status, logger)
  return async (exchange) => {
    const { signal, params, body, trace, memory } = exchange
    const source = uploadSource(body)
    await guard(exchange, 'write')
    // Without the right to read, a client must not learn an object's contents from a delta's checksum.
    if (isDeltaUpload(source)) await guard(exchange, 'read')
    if ((body.length ?? 0) > limits.requestBytesMax)
      throw tooLarge('request_too_large', `the request's body (${body.length} bytes)`, limits.requestBytesMax)
    const summary = await uploadObjects({ store, limits, projectId: params.projectId, trace, memory }, source, signal)
    hint(exchange.headers)
    return {
      status,
      headers: {
        'Content-Type': 'application/json; charset=utf-8',
        'Cache-Control': 'no-store',
        [ACCEPT_HEADER]: BLOCKS_MEDIA_TYPE,
      },
      body: Buffer.from(JSON.stringify(summary)),
    }
  }
}
