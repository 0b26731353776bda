import type { Environment } from '../../environment.ts'
import type { RecordStore } from '../../storage/backend.ts'
import { Bitmap } from '../bytes/bitmap.ts'
import { Uint32List } from '../bytes/growable.ts'
import { type PackTables, tableEntry } from '../pack/pack-format.ts'
import type { Pack, PackCatalog } from '../records/pack-catalog.ts'

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
  /** Whether the walk knows the ids of which the pack is not sure. */
  isDoubtNoted: boolean
  /** Targets that were met as a reference, and as a claim: each is followed up once for each. */
  referred: Bitmap | undefined
  claimed: Bitmap | undefined
}

export function walkedPack(pack: Pack, objects: number): WalkedPack {
  return {
    pack,
    visited: Bitmap.empty(objects),
    open: new Uint32List(),
    openBytes: 0,
    isIndexed: false,
    isDoubtNoted: false,
    referred: undefined,
    claimed: undefined,
  }
}

/** The ids of which the pack is not sure: objects that are or were condemned. */
export function* idsInDoubt({ pack: { record } }: WalkedPack, { ids, objects }: PackTables): Generator<Uint8Array> {
  const { condemned } = record
  if (condemned === undefined || condemned.count === 0) return
  for (let ordinal = 0; ordinal < objects; ordinal++) if (condemned.has(ordinal)) yield tableEntry(ids, ordinal)
}
