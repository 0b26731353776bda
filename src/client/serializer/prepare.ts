import { ClientError, quoted } from '../common/errors.ts'
import { isReference } from '../common/references.ts'
import type { ChunkOrigin, Origin, Origins } from './origins.ts'
import { chunkItemsOf, isDetachedName, itemsOfPieces, newReference, type Reference, setMember } from './shape.ts'

/** A separate object that was met inside another one. */
export interface Child {
  readonly value: object
  readonly origin: Origin | undefined
  /** Stands in its place; gets its id when that is known. */
  readonly reference: Reference
  /** The place where it was met, such as `elements[3]`. */
  readonly path: string
  /** Whether the value was made for this child alone, so that it cannot be met again. */
  readonly isPiece: boolean
}

/** One object as plain JSON, with references for its separate objects. */
export interface Prepared {
  readonly body: Readonly<Record<string, unknown>>
  readonly children: readonly Child[]
  /** All its references, including those that were in the value already, in the order of its text. */
  readonly references: readonly Pick<Reference, 'referencedId'>[]
}

export interface PrepareOptions {
  readonly typeField: string
  readonly chunkType: string
  readonly nestingMax: number
  readonly origins: Origins | undefined
}

const BOXES: ReadonlySet<string> = new Set(['Number', 'String', 'Boolean', 'BigInt'].map((name) => `[object ${name}]`))
const OPAQUE: readonly (abstract new (...args: never[]) => object)[] = [
  Map,
  Set,
  WeakMap,
  WeakSet,
  WeakRef,
  Promise,
  ArrayBuffer,
  RegExp,
  Error,
  Blob,
]

/** They belong to the serializer. */
const OWN_MEMBERS: ReadonlySet<string> = new Set(['id', 'totalChildrenCount', '__closure'])

/** Throws `invalid_value` for values that JSON cannot hold, naming the place below `at`. */
export function prepare(value: object, origin: Origin | undefined, at: string, options: PrepareOptions): Prepared {
  return new Preparation(options, at).run(value, origin)
}

class Preparation {
  readonly #options: PrepareOptions
  readonly #at: string
  readonly #children: Child[] = []
  readonly #references: Pick<Reference, 'referencedId'>[] = []
  readonly #trail: (string | number)[] = []
  readonly #open = new Set<object>()
  #inline: Origin['inline']

  constructor(options: PrepareOptions, at: string) {
    this.#options = options
    this.#at = at
  }

  run(value: object, origin: Origin | undefined): Prepared {
    this.#inline = origin?.inline
    const body = this.#members(value, (name) => !OWN_MEMBERS.has(name), origin)
    return { body, children: this.#children, references: this.#references }
  }

  #members(
    value: object,
    isWanted: (name: string) => boolean,
    origin?: Pick<Origin, 'chunked' | 'detached'>,
  ): Record<string, unknown> {
    return this.#within(value, () => {
      const body: Record<string, unknown> = {}
      for (const [name, inner] of Object.entries(value) as [string, unknown][]) {
        if (inner === undefined || !isWanted(name)) continue
        this.#trail.push(name)
        setMember(body, name, this.#member(name, inner, origin))
        this.#trail.pop()
      }
      return body
    })
  }

  #member(name: string, value: unknown, origin: Pick<Origin, 'chunked' | 'detached'> | undefined): unknown {
    const items = chunkItemsOf(name) ?? origin?.chunked?.get(name)
    if (items === 0) throw this.#refusal('asks for pieces of 0 items; 1 is the least')
    const array = items === undefined ? undefined : asArray(value)
    if (array !== undefined && items !== undefined) {
      const chunks = this.#options.origins?.ofArray(array)
      return chunks === undefined
        ? this.#pieces(array, 0, items, this.#newPiece())
        : this.#sameChunks(array, chunks, items)
    }
    return this.#plain(value, isDetachedName(name) || origin?.detached?.has(name) === true)
  }

  #plain(given: unknown, detach: boolean): unknown {
    if (given instanceof Date && Number.isNaN(given.getTime())) throw this.#refusal('is an invalid date')
    const value = unboxed(hasToJson(given) ? given.toJSON(String(this.#trail.at(-1) ?? '')) : given)
    if (typeof value === 'number' && !Number.isFinite(value)) throw this.#refusal(`is ${value}, which JSON cannot hold`)
    if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
      return value
    if (typeof value !== 'object') throw this.#refusal(`is of type ${typeof value}, which JSON cannot hold`)
    const array = asArray(value)
    if (array !== undefined) return this.#array(array, detach)
    const origin = this.#options.origins?.ofObject(value)
    if (origin === undefined && isReference(value)) {
      this.#references.push(value)
      return this.#members(value, () => true)
    }
    if (isOpaque(value))
      throw this.#refusal(`is a ${value.constructor.name}, which JSON cannot hold; make an object or an array of it`)
    const inline = this.#inline?.get(value)
    if (inline !== undefined && inline.member === this.#trail[0]) return this.#members(value, () => true, inline)
    if (detach || origin !== undefined) return this.#detached(value, origin, false)
    return this.#members(value, () => true)
  }

  #array(array: readonly unknown[], detach: boolean): unknown {
    const chunks = this.#options.origins?.ofArray(array)
    if (chunks !== undefined) return this.#sameChunks(array, chunks, itemsOfPieces(chunks.map(({ items }) => items)))
    return this.#within(array, () =>
      Array.from(array, (item, index) => {
        if (typeof item === 'number' && Number.isFinite(item)) return item
        this.#trail.push(index)
        const plain = this.#plain(item, detach)
        this.#trail.pop()
        return plain
      }),
    )
  }

  /**
   * In its original chunks; additional items make more chunks of the same size, which otherwise equal the first one.
   */
  #sameChunks(array: readonly unknown[], chunks: readonly ChunkOrigin[], items: number): readonly Reference[] {
    const references: Reference[] = []
    let at = 0
    for (const origin of chunks) {
      if (at >= array.length && origin.items > 0) break
      references.push(this.#detached({ ...origin.template, data: array.slice(at, at + origin.items) }, origin, true))
      at += origin.items
    }
    return [...references, ...this.#pieces(array, at, items, chunks[0].template)]
  }

  #pieces(
    array: readonly unknown[],
    from: number,
    items: number,
    template: Readonly<Record<string, unknown>>,
  ): readonly Reference[] {
    const references: Reference[] = []
    for (let at = from; at < array.length; at += items)
      references.push(this.#detached({ ...template, data: array.slice(at, at + items) }, undefined, true))
    return references
  }

  #newPiece(): Readonly<Record<string, unknown>> {
    return { [this.#options.typeField]: this.#options.chunkType }
  }

  #detached(value: object, origin: Origin | undefined, isPiece: boolean): Reference {
    const reference = newReference(this.#options.typeField, '')
    this.#children.push({ value, origin, reference, path: this.#path(), isPiece })
    this.#references.push(reference)
    return reference
  }

  #within<T>(container: object, read: () => T): T {
    if (this.#open.has(container)) throw this.#refusal('holds itself; objects must not form a cycle')
    if (this.#open.size >= this.#options.nestingMax)
      throw this.#refusal(`lies deeper than ${this.#options.nestingMax} levels; detach some with "@" before a name`)
    this.#open.add(container)
    const result = read()
    this.#open.delete(container)
    return result
  }

  #refusal(rule: string): ClientError {
    const path = this.#path()
    return new ClientError('invalid_value', `the value at ${quoted(path === '' ? '(root)' : path, 200)} ${rule}`)
  }

  #path(): string {
    return this.#trail.reduce<string>(
      (path, step) => (typeof step === 'number' ? `${path}[${step}]` : path === '' ? step : `${path}.${step}`),
      this.#at,
    )
  }
}

function asArray(value: unknown): readonly unknown[] | undefined {
  if (Array.isArray(value)) return value as readonly unknown[]
  return ArrayBuffer.isView(value) && !(value instanceof DataView)
    ? Array.from(value as unknown as ArrayLike<unknown>)
    : undefined
}

/** The primitive value that JSON takes a wrapper object for. */
function unboxed(value: unknown): unknown {
  return typeof value === 'object' && value !== null && BOXES.has(Object.prototype.toString.call(value))
    ? value.valueOf()
    : value
}

export function hasToJson(value: unknown): value is { toJSON(key: string): unknown } {
  return (
    typeof value === 'object' && value !== null && typeof (value as { readonly toJSON?: unknown }).toJSON === 'function'
  )
}

/** A value that JSON would turn into an object without members. */
function isOpaque(value: object): boolean {
  return OPAQUE.some((type) => value instanceof type) || ArrayBuffer.isView(value)
}
