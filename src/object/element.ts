/** One element of an uploaded JSON array, cut out but not yet looked into. */
export interface Element {
  /** The element's text as received, without white space around it. Valid until the next batch is asked for. */
  readonly bytes: Uint8Array
  /** The index of its file part in a multipart body, from 0; always 0 for a whole body. */
  readonly part: number
  /** Its place in its array, from 0. */
  readonly index: number
}
