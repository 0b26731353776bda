import { contentId, lineText } from '../common/content-id.ts'
import { ClientError, quoted } from '../common/errors.ts'
import { missingError } from '../download/list.ts'
import type { CallOptions, DagObject, ObjectText } from '../common/types.ts'
import { type ArrayLink, findLinks, type Links } from './links.ts'
import type { ChunkOrigin, Origin, Origins } from './origins.ts'
import { CHUNK_TYPE, type GraphConventions, itemsOfPieces, setMember, TYPE_FIELD } from './shape.ts'

/** Options for turning a received graph back into a value. */
export interface DeserializeOptions extends GraphConventions, CallOptions {
  /** Remembers the origin of the values here, for `serialize`. */
  readonly origins?: Origins
  /**
   * Leaves `id` and `totalChildrenCount` on the objects. True by default; without them the value equals the one that
   * was serialized.
   */
  readonly keepIds?: boolean
  /** The handling of a reference whose object did not arrive: an error (`objects_missing`), or the reference stays. */
  readonly missing?: 'error' | 'keep'
  /**
   * The most items that all chunked arrays may have together. 134,217,728 by default: a small object that refers to one
   * chunk again and again makes an array that exceeds any memory.
   */
  readonly joinedItemsMax?: number
}

const JOINED_ITEMS_MAX = 134_217_728

type Members = Record<string, unknown>

interface Loaded {
  /** Its members, with references in place of objects. */
  readonly value: Members
  readonly links: Links
  /** Only if origins are remembered. */
  readonly origin: Origin | undefined
  /** Once its pieces were looked for, and once its references are objects. */
  state: 'loaded' | 'entered' | 'resolved'
}

/**
 * The value that the objects make, from the root on: references become the objects that they name, the same object for
 * every reference, and chunks become arrays again. `__closure` is removed. Everything is in memory at once. Throws
 * `not_found` if the root is missing, `objects_missing`, and `invalid_answer` for a text that is not a JSON object, and
 * for arrays that are too long.
 */
export async function deserialize<T extends object = DagObject>(
  objects: Iterable<readonly ObjectText[]> | AsyncIterable<readonly ObjectText[]>,
  root: string,
  options: DeserializeOptions = {},
): Promise<T> {
  const graph = new LoadedGraph(options)
  for await (const batch of objects) {
    options.signal?.throwIfAborted()
    await graph.load(batch)
  }
  return graph.resolve(root) as T
}

class LoadedGraph {
  readonly #options: DeserializeOptions
  readonly #typeField: string
  readonly #chunkType: string
  readonly #objects = new Map<string, Loaded>()
  readonly #missing = new Set<string>()
  #open: Loaded[] = []
  #joinedItems = 0

  constructor(options: DeserializeOptions) {
    this.#options = options
    this.#typeField = options.typeField ?? TYPE_FIELD
    this.#chunkType = options.chunkType ?? CHUNK_TYPE
  }

  async load(batch: readonly ObjectText[]): Promise<void> {
    const loaded = await Promise.all(batch.map((object) => this.#loaded(object)))
    for (const [at, { id }] of batch.entries()) this.#objects.set(id, loaded[at])
  }

  resolve(root: string): Members {
    const top = this.#objects.get(root)
    if (top === undefined) throw new ClientError('not_found', `the root ${quoted(root)} is not among the objects`)
    this.#open = [top]
    for (let object = this.#open.at(-1); object !== undefined; object = this.#open.at(-1)) this.#advance(object)
    if (this.#missing.size > 0 && this.#options.missing !== 'keep') throw missingError([...this.#missing])
    return top.value
  }

  async #loaded({ id, json }: ObjectText): Promise<Loaded> {
    const { __closure: _closure, ...members } = parsed(id, json)
    const { origins, keepIds = true } = this.#options
    const value = keepIds ? members : withoutIds(members)
    const links = findLinks(value, this.#typeField)
    if (origins === undefined) return { value, links, origin: undefined, state: 'loaded' }
    const body = keepIds ? withoutIds(members) : value
    return {
      value,
      links,
      origin: { id, fingerprint: await contentId(lineText(body)), detached: links.names, inline: links.inline },
      state: 'loaded',
    }
  }

  /** An object on top of the stack, whose pieces come before it. Pieces may have pieces, deeper than calls can go. */
  #advance(object: Loaded): void {
    if (object.state === 'loaded') {
      object.state = 'entered'
      for (const link of object.links.arrays)
        for (const piece of this.#piecesOf(object, link)) if (piece.state === 'loaded') this.#open.push(piece)
      return
    }
    this.#open.pop()
    if (object.state === 'resolved') return
    object.state = 'resolved'
    this.#resolveLinks(object)
  }

  #resolveLinks(object: Loaded): void {
    const chunked = new Map<string, number>()
    for (const link of object.links.arrays) {
      const { holder, key } = link
      const pieces = this.#piecesOf(object, link)
      if (pieces.length === 0) continue
      setMember(holder, String(key), this.#joined(pieces))
      if (holder === object.value) chunked.set(String(key), itemsOfPieces(pieces.map(lengthOf)))
    }
    for (const { holder, key, id, given } of object.links.single) {
      const target = this.#objects.get(id)
      if (target === undefined) {
        this.#missing.add(id)
        if (given !== undefined) setMember(holder, String(key), given)
      } else {
        setMember(holder, String(key), target.value)
        if (target.state === 'loaded') this.#open.push(target)
      }
    }
    if (object.origin !== undefined) this.#options.origins?.setObject(object.value, { ...object.origin, chunked })
  }

  /**
   * The objects that are the chunks of one array; none if they are not chunks. A chunk's own items are not chunked:
   * that would grow with each level.
   */
  #piecesOf(object: Loaded, { holder, key, ids }: ArrayLink): readonly Loaded[] {
    if (key === 'data' && holder === object.value && this.#isChunk(object)) return []
    const pieces = ids.map((id) => this.#objects.get(id)).filter((piece) => piece !== undefined)
    return pieces.length === ids.length && pieces.every((piece) => this.#isChunk(piece)) ? pieces : []
  }

  #isChunk({ value }: Loaded): boolean {
    return value[this.#typeField] === this.#chunkType && Array.isArray(value.data)
  }

  /** The items of all pieces as one array. */
  #joined(pieces: readonly Loaded[]): readonly unknown[] {
    const whole: unknown[] = []
    const chunks: ChunkOrigin[] = []
    for (const piece of pieces) {
      const data = piece.value.data as readonly unknown[]
      this.#countJoined(data.length)
      for (const item of data) whole.push(item)
      if (piece.origin !== undefined)
        chunks.push({ ...piece.origin, items: data.length, template: { ...withoutIds(piece.value), data: [] } })
    }
    if (chunks.length > 0) this.#options.origins?.setArray(whole, chunks)
    return whole
  }

  #countJoined(items: number): void {
    const { joinedItemsMax = JOINED_ITEMS_MAX } = this.#options
    this.#joinedItems += items
    if (this.#joinedItems > joinedItemsMax)
      throw new ClientError(
        'invalid_answer',
        `the arrays in pieces have more than ${joinedItemsMax} items together; joinedItemsMax allows more`,
      )
  }
}

function lengthOf({ value }: Loaded): number {
  return (value.data as readonly unknown[]).length
}

function withoutIds({ id: _id, totalChildrenCount: _count, ...body }: Members): Members {
  return body
}

function parsed(id: string, json: string): Members {
  try {
    const value = JSON.parse(json) as unknown
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Members
  } catch (cause) {
    throw new ClientError('invalid_answer', `the text of object ${quoted(id)} is not JSON`, { cause })
  }
  throw new ClientError('invalid_answer', `the text of object ${quoted(id)} is not a JSON object`)
}
