/** Anything that JSON can say (RFC 8259). */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | { readonly [name: string]: JsonValue }

/** A JSON object. */
export interface JsonObject {
  /** Any JSON value. */
  readonly [name: string]: JsonValue
}
