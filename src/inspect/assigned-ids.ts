import type { AssignedId } from '../object/wire-types.ts'

/** The memory of one of them as an object with a string, and as text in the response. */
const LISTED_BYTES = 320
const FIRST_CAPACITY = 16
const ID_BYTES = 16

/**
 * Ids of 32 hex digits that were given to objects, the first `max` of them, as bytes: half a million are no half a
 * million objects and strings.
 */
export class AssignedIds {
  readonly #max: number
  #places = new Uint32Array(2 * FIRST_CAPACITY)
  #ids = Buffer.alloc(ID_BYTES * FIRST_CAPACITY)
  #kept = 0
  #count = 0

  constructor(max: number) {
    this.#max = max
  }

  /** How many were assigned, kept or not. */
  get count(): number {
    return this.#count
  }

  get memoryBytes(): number {
    return this.#places.byteLength + this.#ids.byteLength
  }

  /** Bytes of memory that `list` takes, and telling it. */
  get listBytes(): number {
    return this.#kept * LISTED_BYTES
  }

  /** `id` has 32 hex digits. */
  add(part: number, index: number, id: string): void {
    this.#count++
    if (this.#kept === this.#max) return
    if (this.#kept * 2 === this.#places.length) this.#grow()
    this.#places[this.#kept * 2] = part
    this.#places[this.#kept * 2 + 1] = index
    this.#ids.write(id, this.#kept * ID_BYTES, 'hex')
    this.#kept++
  }

  /** The kept ones, in the order of their arrival. */
  list(): AssignedId[] {
    return Array.from({ length: this.#kept }, (_, i) => ({
      part: this.#places[2 * i],
      index: this.#places[2 * i + 1],
      id: this.#ids.toString('hex', i * ID_BYTES, (i + 1) * ID_BYTES),
    }))
  }

  #grow(): void {
    const places = new Uint32Array(this.#places.length * 2)
    places.set(this.#places)
    this.#places = places
    this.#ids = Buffer.concat([this.#ids, Buffer.alloc(this.#ids.length)])
  }
}
