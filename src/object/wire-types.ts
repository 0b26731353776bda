/* Generated from the shapes of the wire (`src/openapi/description/shape.ts`): run `npm run schemas`. */

/** An object that arrived without an id, and the id that it was assigned. */
export interface AssignedId {
  /** The index of the part of the body, from 0; 0 without parts. */
  readonly part: number
  /** Which element of its array, from 0. */
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
   * Objects whose text is not kept byte for byte, because an object travels as one line: line ends and
   * tabs between tokens are removed, and raw U+0085, U+2028 and U+2029 in strings become escapes. The
   * JSON value stays the same.
   */
  readonly rewritten: number
  /** The objects that arrived without an id: the first 10,000 of them, unless a server has another limit. */
  readonly assigned: readonly AssignedId[]
  /**
   * How many arrived without an id. If `assigned` has fewer, the others are omitted; smaller uploads
   * list all.
   */
  readonly assignedCount: number
}

/** Each requested id: `true` if the project holds it, otherwise `false`. */
export type ObjectDiffResponse = { readonly [name: string]: boolean }

/** The top-level members to send. `id` is always sent. */
export type AttributeMask =
  | { /** Only these. */ readonly include: readonly string[] }
  | { /** All but these. */ readonly exclude: readonly string[] }

/** Objects to send, and which of their members. */
export interface ObjectStreamRequest {
  /** The ids, as many as fit 32 MB. */
  readonly objectIds: readonly string[]
  readonly attributeMask?: AttributeMask
}
