import type { ObjectRecord } from '../../object/line.ts'

/** An object as a store returns it: the text that it was given, or a text of its own that has the member `id`. */
export type StoredObject = Pick<ObjectRecord, 'id' | 'json'>

/**
 * The storage of a host that keeps objects itself: three methods over plain objects. Every method receives the project;
 * nothing may be shared between projects. Features that need plans (`have`, ranges, removing a project) answer 501 on
 * such a store.
 */
export interface ObjectStore {
  /**
   * One request: all or nothing, durable when it resolves; if `batches` throws or `signal` aborts, nothing is visible.
   * Each id occurs once. The first text for an id stays: a held id is not written again. `inserted` counts those that
   * were not held.
   */
  put(
    projectId: string,
    batches: AsyncIterable<readonly ObjectRecord[]>,
    options: { readonly signal: AbortSignal },
  ): Promise<{ readonly inserted: number }>
  /** In the order of `ids`, 1,000 of them at most. Sees every put that has resolved. */
  has(projectId: string, ids: readonly string[]): Promise<readonly boolean[]>
  /** In any order, without missing ones, each once. Returning early frees everything. */
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
