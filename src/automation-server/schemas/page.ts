/** A part of a list, and where the next one begins; `null` at the end. A part may be short, or empty, before the end. */
export interface Page<T> {
  /** The items of this part. */
  readonly items: readonly T[]
  /** The cursor of the next part; `null` at the end. */
  readonly cursor: string | null
}

/** Which part of a list. */
export interface PageRequest {
  /** From 1 to 1,000; 100 by default. */
  readonly limit?: number
  /** The `cursor` of the part before. */
  readonly cursor?: string
}
