import { once } from 'node:events'
import type { ObjectRecord, StoredObject } from '../../src/index.ts'
import { PlainObjectStore } from './plain-object-store.ts'

/** Tells what is open in it, and can be told to wait before it gives. */
export class WatchedStore extends PlainObjectStore {
  puts = 0
  gets = 0
  waits = false

  override async put(
    projectId: string,
    batches: AsyncIterable<readonly ObjectRecord[]>,
  ): Promise<{ inserted: number }> {
    this.puts++
    try {
      return await super.put(projectId, batches)
    } finally {
      this.puts--
    }
  }

  override async *get(
    projectId: string,
    ids: readonly string[],
    options: { readonly signal: AbortSignal },
  ): AsyncGenerator<readonly StoredObject[]> {
    this.gets++
    try {
      if (this.waits) await once(options.signal, 'abort')
      yield* super.get(projectId, ids, options)
    } finally {
      this.gets--
    }
  }
}
