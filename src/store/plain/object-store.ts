import type { ObjectRecord } from '../../object/line.ts'

/** What a store gives back of an object: the text that it was given, or one of its own that has the member `id`. */
export type StoredObject = Pick<ObjectRecord, 'id' | 'json'>

/**
 * Where a host keeps objects itself: three methods over plain objects. Everything is told the project; nothing may be shared between projects.
 * What needs plans (`have`, ranges, removing a project) answers 501 on such a store.
 */
export interface ObjectStore {
  /**
   * One request: all or nothing, durable when it resolves; if `batches` throws or `signal` aborts, nothing is visible. An id comes once. The first
   * text for an id stays: an id that is held is not written again. `inserted` counts those that were not held.
   */
  put(
    projectId: string,
    batches: AsyncIterable<readonly ObjectRecord[]>,
    options: { readonly signal: AbortSignal },
  ): Promise<{ readonly inserted: number }>
  /** In the order of `ids`, 1,000 of them at most. Sees every put that has resolved. */
  has(projectId: string, ids: readonly string[]): Promise<readonly boolean[]>
  /** In any order, missing ones left out, each once. Returning early frees everything. */
  get(
    projectId: string,
    ids: readonly string[],
    options: { readonly signal: AbortSignal },
  ): AsyncIterable<readonly StoredObject[]>
  /** The ids of everything below the root, held or not, each once. Without it the core walks the references itself. */
  descendants?(
    projectId: string,
    root: string,
    options: { readonly signal: AbortSignal },
  ): AsyncIterable<readonly string[]>
  /** Called before the first request. What it rejects with fails the requests that wait for it. */
  ready?(): Promise<void>
  /** Called once, when the service closes and nothing is under way any more. */
  close?(): Promise<void>
}
