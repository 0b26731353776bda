/** An object that arrived without an id, and the assigned one. */
export interface AssignedId {
  /** The part of the form, from 0; 0 for other bodies. */
  readonly part: number
  /** The place of the object in its part. */
  readonly index: number
  /** The id that the service made. */
  readonly id: string
}

/** The outcome of an upload. */
export interface UploadSummary {
  /** Received objects, each id once. */
  readonly objects: number
  /** How many of these were not held before. */
  readonly created: number
  /** How many of the others arrived with a text that differs from the held one. The held one stays. */
  readonly differing: number
  /**
   * Objects whose text is not kept byte for byte: line ends and tabs between tokens are removed, and raw U+0085, U+2028
   * and U+2029 in strings become escapes, because an object travels as one line. The JSON value stays the same.
   */
  readonly rewritten: number
  /**
   * Objects that arrived without an id: the positions of the first ones in the request, and the ids that they were
   * given.
   */
  readonly assigned: readonly AssignedId[]
  /**
   * How many arrived without an id. If this exceeds the length of `assigned`, the others are omitted there
   * (`limits.assignedIdsMax`).
   */
  readonly assignedCount: number
}
