/** The received form of an object: while its text is the same, so is its id. */
export interface Origin {
  /** The id of the object. */
  readonly id: string
  /** The hash of its text without `id`, `totalChildrenCount` and `__closure`, as the serializer spells it. */
  readonly fingerprint: string
  /** Its members that held references: values that are assigned there later become separate objects, too. */
  readonly detached?: ReadonlySet<string>
  /** Its members that were arrays in pieces, with the items of one piece. */
  readonly chunked?: ReadonlyMap<string, number>
  /** Objects that were inside it themselves rather than as references: they stay inside while they are there. */
  readonly inline?: ReadonlyMap<object, InlineOrigin>
}

/** The place of an object inside another one. */
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
 * Remembers the origin of values that `deserialize` made, so that `serialize` gives unchanged parts their ids again,
 * regardless of how the ids were made, and detaches the same members. Forgets together with the values.
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

  /** Remembers the origin of an object. */
  setObject(value: object, origin: Origin): void {
    this.#objects.set(value, origin)
  }

  /** Remembers the origin of an array's chunks. */
  setArray(value: object, chunks: readonly ChunkOrigin[]): void {
    this.#arrays.set(value, chunks)
  }
}
