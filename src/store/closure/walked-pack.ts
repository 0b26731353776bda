import type { Environment } from '../../environment.ts'
import type { RecordStore } from '../../storage/backend.ts'
import { Bitmap } from '../bytes/bitmap.ts'
import { Uint32List } from '../bytes/growable.ts'
import type { ObjectLocation } from '../records/locator.ts'
import type { Pack, PackCatalog } from '../records/pack-catalog.ts'
import type { PackSelection } from './closure.ts'

/** Where an object lies. */
export type Place = Pick<ObjectLocation, 'sequence' | 'ordinal'>

export interface WalkParts {
  readonly records: RecordStore
  readonly catalog: PackCatalog
  readonly environment: Environment
}

/** The walk's state for one pack. Targets are numbered as in its tables: ordinals, then external ids. */
export interface WalkedPack {
  readonly pack: Pack
  readonly visited: Bitmap
  /** Ordinals that were reached and not yet looked into. */
  readonly open: Uint32List
  /** The memory of that list, as counted last. */
  openBytes: number
  /** Whether the index has the objects that the pack certainly owns. */
  isIndexed: boolean
  /** Targets that were met as a reference, and as a claim: each is followed up once for each. */
  referred: Bitmap | undefined
  claimed: Bitmap | undefined
}

/** A pack of so many objects of which none was reached. */
export function walkedPack(pack: Pack, objects: number): WalkedPack {
  return {
    pack,
    visited: Bitmap.empty(objects),
    open: new Uint32List(),
    openBytes: 0,
    isIndexed: false,
    referred: undefined,
    claimed: undefined,
  }
}

/** What was reached in these packs, in their order. */
export function reachedOf(walked: readonly WalkedPack[]): PackSelection[] {
  return walked
    .filter(({ visited }) => visited.count > 0)
    .map(({ pack, visited }) => ({ sequence: pack.sequence, packId: pack.record.packId, wanted: visited }))
    .sort((a, b) => a.sequence - b.sequence)
}
