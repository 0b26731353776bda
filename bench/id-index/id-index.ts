import type { ObjectPlace } from '../../src/store/records/object-record.ts'

/** Objects of one pack, as compaction leaves it. */
export const PACK_OBJECTS = 200_000

/** One way to find objects by their ids. */
export interface IdIndex {
  /** Of the objects 0 to `objects - 1`, in the order in which uploads bring them. */
  build(objects: number): Promise<void>
  /** In the order of `ids`; `undefined` for absent objects. */
  find(ids: readonly Uint8Array[]): Promise<readonly (ObjectPlace | undefined)[]>
  /** What lies on the disk. */
  sizeBytes(): Promise<number>
  close(): Promise<void>
}

export function placeOf(object: number): ObjectPlace {
  return { sequence: 1 + Math.floor(object / PACK_OBJECTS), ordinal: object % PACK_OBJECTS }
}
