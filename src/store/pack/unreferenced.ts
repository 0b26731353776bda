import { Bitmap } from '../bytes/bitmap.ts'
import type { PackTables } from './pack-format.ts'

/** Objects of the pack that no other object of the pack refers to. */
export function unreferencedOrdinals(tables: PackTables): number[] {
  const referenced = Bitmap.empty(tables.objects)
  for (const target of tables.references.targets) if (target < tables.objects) referenced.add(target)
  const ordinals: number[] = []
  for (let ordinal = 0; ordinal < tables.objects; ordinal++) if (!referenced.has(ordinal)) ordinals.push(ordinal)
  return ordinals
}
