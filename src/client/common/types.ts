/** An object as it is stored: with any JSON members besides its id. */
export interface DagObject {
  /** Names the object. */
  readonly id: string
  /** Any JSON, and references to other objects. */
  readonly [member: string]: unknown
}

/** An object as its JSON text, which has the same `id` as a member. */
export interface ObjectText {
  /** The id of the object. */
  readonly id: string
  /** The text of the object, character for character. */
  readonly json: string
}

/**
 * An object to upload, with an older one that the server holds and that it resembles: if that saves bytes, only a delta
 * is sent.
 */
export interface TextWithBase extends ObjectText {
  /** The object that the text is sent as a delta of. */
  readonly base: ObjectText
}

/** Options of every call of the client. */
export interface CallOptions {
  /** Ends the call, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal
}

/** A list of ids, at once or as they come. */
export type Ids = Iterable<string> | AsyncIterable<string>

/** The part of `fetch` that the client uses. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>
