import type { DeflatePool } from '../../compression/deflate-pool.ts'
import type { Limits } from '../../limits.ts'
import type { Logger } from '../../logger.ts'
import type { GraphStore } from '../../object/graph-store.ts'
import type { Guard } from '../core.ts'
import type { Operation } from '../exchange.ts'
import type { EndpointName } from '../object-routes.ts'
import { diffOperation } from './diff.ts'
import { graphOperation } from './graph.ts'
import { listOperation } from './list.ts'
import { singleOperation } from './single.ts'
import { streamOperation } from './stream.ts'
import { uploadOperation } from './upload.ts'

export interface OperationDeps<H> {
  readonly store: GraphStore
  readonly guard: Guard<H>
  readonly limits: Limits
  readonly compressor: DeflatePool
  readonly uploadStatus: 200 | 201
  readonly logger: Logger | undefined
}

/** Each endpoint over the narrowest part of the store that it needs. */
export function createOperations<H>(deps: OperationDeps<H>): { readonly [E in EndpointName]: Operation<H> } {
  const { store, guard, limits, compressor, uploadStatus, logger } = deps
  return {
    diff: diffOperation({ store, guard, limits }),
    upload: uploadOperation({ store, guard, limits, status: uploadStatus, logger }),
    single: singleOperation({ store, guard, compressor }),
    list: listOperation({ store, guard, limits, compressor }),
    graph: graphOperation({ store, guard, compressor }),
    stream: streamOperation({ store, guard, limits, compressor }),
  }
}
