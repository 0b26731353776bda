import { SeenIds } from '../../client/common/seen-ids.ts'
import type { TextWithBase, ObjectText } from '../../client/index.ts'
import { printNote } from '../common/output.ts'
import type { Connected } from './connect.ts'
import { EarlierObjects } from './earlier-objects.ts'
import { openObjectFile, STDIN } from './object-file.ts'
import { RootFinder } from './roots.ts'

/** More roots than this are no model, and each costs a request. */
const ROOTS_MAX = 16

/** Objects that the server is known to hold, without asking about each. */
export class KnownObjects {
  readonly #ids: readonly SeenIds[]
  readonly #earlier: EarlierObjects | undefined
  #leftOut = 0

  constructor(ids: readonly SeenIds[], earlier: EarlierObjects | undefined) {
    this.#ids = ids
    this.#earlier = earlier
  }

  get leftOut(): number {
    return this.#leftOut
  }

  /** The objects that are not known, each with the older one that it resembles, as far as can be guessed. */
  async leaveOut(objects: readonly ObjectText[]): Promise<readonly (ObjectText | TextWithBase)[]> {
    if (this.#ids.length === 0) return objects
    const rest: (ObjectText | TextWithBase)[] = []
    for (const object of objects) {
      if (this.#ids.some((ids) => ids.has(object.id))) {
        this.#leftOut += 1
        await this.#earlier?.meet(object.id)
      } else {
        const base = await this.#earlier?.replaced()
        rest.push(base === undefined ? object : { ...object, base })
      }
    }
    return rest
  }

  async close(): Promise<void> {
    await this.#earlier?.close()
  }
}

/**
 * The objects of files that were uploaded before. Every object of a file lies below one of its roots. If the server
 * reports for each root that nothing below it is missing, it holds them all. This costs a thousandth of asking about
 * each.
 */
export async function openKnownObjects(paths: readonly string[], connected: Connected): Promise<KnownObjects> {
  const known: SeenIds[] = []
  let earlierPath: string | undefined
  for (const path of paths) {
    const held = await heldIds(path, connected)
    known.push(...held)
    if (held.length > 0 && path !== STDIN) earlierPath ??= path
  }
  const earlier = earlierPath === undefined ? undefined : await openObjectFile(earlierPath, connected.signal)
  return new KnownObjects(known, earlier === undefined ? undefined : new EarlierObjects(earlier.objects))
}

/** The ids of a file, or nothing. */
async function heldIds(path: string, { project, signal }: Connected): Promise<readonly SeenIds[]> {
  const finder = new RootFinder()
  const { objects } = await openObjectFile(path, signal)
  const ids = new SeenIds()
  for await (const batch of objects) {
    for (const object of batch) if (ids.add(object.id)) finder.add(object)
  }
  const { roots, count } = finder.find(ROOTS_MAX)
  const infos = count > ROOTS_MAX ? [] : await Promise.all(roots.map((root) => project.graphInfo(root, { signal })))
  const below = infos.reduce((sum, info) => sum + (info?.objects ?? 0), 0)
  const isHeld = infos.length > 0 && infos.every((info) => info?.missing === 0) && below >= finder.objects
  if (isHeld) return [ids]
  printNote(
    `${path} makes no difference: the server does not hold all of it${count > ROOTS_MAX ? ` as one model, since ${count} of its objects are roots` : ''}`,
  )
  return []
}
