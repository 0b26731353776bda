/** Between two moments, counted over everything that begins or ends. */
export interface Span {
  readonly start: number
  /** `Infinity` while it is under way. */
  end: number
  /** Virtual times of both. */
  readonly startMs: number
  endMs: number
}

/**
 * The knowledge about an upload. `acknowledged`: the client received its success. `unknown`: the client received a
 * failure, or nothing, so it is present as a whole or not at all. `refused`: it cannot be present.
 */
export interface Upload extends Span {
  readonly texts: ReadonlyMap<string, string>
  outcome: 'unknown' | 'acknowledged' | 'refused'
}
