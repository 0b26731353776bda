/** What an object was when it was received: as long as its text is the same, so is its id. */
export interface Origin {
  /** The id of the object. */
  readonly id: string
  /** The hash of its text without `id`, `totalChildrenCount` and `__closure`, as the serializer spells it. */
  readonly fingerprint: string
  /** Its members that held references: what is put there later becomes objects of their own too. */
  readonly detached?: ReadonlySet<string>
  /** Its members that were arrays in pieces, with the items of one piece. */
  readonly chunked?: ReadonlyMap<string, number>
  /** Objects inside it that stood there themselves and not as references: where they are still, they stay. */
  readonly inline?: ReadonlyMap<object, InlineOrigin>
}

/** Where an object stood inside another one. */
export interface InlineOrigin {
  /** The member of the other one, at whatever depth below it. */
  readonly member: string
  /** Its own members that held references. */
  readonly detached: ReadonlySet<string>
}

/** An object that held a piece of a long array. */
export interface ChunkOrigin extends Origin {
  /** The number of items in the chunk. */
  readonly items: number
  /** Its members, with an empty array in the place of the items. */
  readonly template: Readonly<Record<string, unknown>>
}

/**
 * Remembers where values came from that `deserialize` made, so that `serialize` gives the unchanged parts their ids again, whoever made these up, and
 * detaches what was detached. Forgets with the values.
 */
export class Origins {
  readonly #objects = new WeakMap<object, Origin>()
  readonly #arrays = new WeakMap<object, readonly ChunkOrigin[]>()

  /** The object that this value was; `undefined` for a value that was not received. */
  ofObject(value: object): Origin | undefined {
    return this.#objects.get(value)
  }

  /** The objects that held the pieces of this array, in their order. */
  ofArray(value: object): readonly ChunkOrigin[] | undefined {
    return this.#arrays.get(value)
  }

  /** Remembers where an object came from. */
  setObject(value: object, origin: Origin): void {
    this.#objects.set(value, origin)
  }

  /** Remembers where the pieces of an array came from. */
  setArray(value: object, chunks: readonly ChunkOrigin[]): void {
    this.#arrays.set(value, chunks)
  }
}
