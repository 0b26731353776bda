/** An object that came without an id, and the one it was given. */
export interface AssignedId {
  /** The part of the form, from 0; 0 for other bodies. */
  readonly part: number
  /** The place of the object in its part. */
  readonly index: number
  /** The id that the service made. */
  readonly id: string
}

/** What became of an upload. */
export interface UploadSummary {
  /** Received objects, each id once. */
  readonly objects: number
  /** How many of these were not held before. */
  readonly created: number
  /** How many of the others arrived with a text that differs from the held one. The held one stays. */
  readonly differing: number
  /**
   * Objects whose text is not kept byte for byte: line ends and tabs between tokens are removed, and raw U+0085, U+2028 and U+2029 in strings become
   * escapes, because an object travels as one line. The JSON value stays the same.
   */
  readonly rewritten: number
  /** Objects that came without an id: where the first of them stood in the request, and the id each was given. */
  readonly assigned: readonly AssignedId[]
  /** How many came without an id. Where it is more than `assigned` has, the others are left out of it (`limits.assignedIdsMax`). */
  readonly assignedCount: number
}
