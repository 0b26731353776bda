import { IdLedger } from '../../client/id-ledger.ts'
import type { ObjectText } from '../../client/index.ts'
import { printNote } from '../output.ts'
import type { Connected } from './connect.ts'
import { openObjectFile } from './object-file.ts'
import { RootFinder } from './roots.ts'

/** More roots than this are no model, and each costs a request. */
const ROOTS_MAX = 16

/** Objects of which the server has said that it holds them, without being asked about each. */
export class KnownObjects {
  readonly #ids: readonly IdLedger[]
  #leftOut = 0

  constructor(ids: readonly IdLedger[]) {
    this.#ids = ids
  }

  get leftOut(): number {
    return this.#leftOut
  }

  leaveOut(objects: readonly ObjectText[]): readonly ObjectText[] {
    if (this.#ids.length === 0) return objects
    const rest = objects.filter(({ id }) => !this.#ids.some((ids) => ids.has(id)))
    this.#leftOut += objects.length - rest.length
    return rest
  }
}

/**
 * The objects of files that were uploaded before. Every object of a file lies below one of its roots; when the server says of each root that nothing below
 * it is missing, it holds them all. A thousandth of what a question about each would cost.
 */
export async function openKnownObjects(paths: readonly string[], connected: Connected): Promise<KnownObjects> {
  const known: IdLedger[] = []
  for (const path of paths) known.push(...(await heldIds(path, connected)))
  return new KnownObjects(known)
}

/** The ids of a file, or nothing. */
async function heldIds(path: string, { project, signal }: Connected): Promise<readonly IdLedger[]> {
  const finder = new RootFinder()
  const { objects } = await openObjectFile(path, signal)
  const ids = new IdLedger()
  for await (const batch of objects) {
    for (const object of batch) if (ids.add(object.id)) finder.add(object)
  }
  const { roots, count } = finder.find(ROOTS_MAX)
  const infos = count > ROOTS_MAX ? [] : await Promise.all(roots.map((root) => project.graphInfo(root, { signal })))
  const below = infos.reduce((sum, info) => sum + (info?.objects ?? 0), 0)
  const isHeld = infos.length > 0 && infos.every((info) => info?.missing === 0) && below >= finder.objects
  if (isHeld) return [ids]
  printNote(`${path} makes no difference: the server does not hold all of it${count > ROOTS_MAX ? ` as one model, since ${count} of its objects are roots` : ''}`)
  return []
}
