/** An object as it is stored: with what JSON members it likes beside its id. */
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

/** An object to upload, with an older one that the server holds and that it resembles: where it saves something, only what makes the one of the other is sent. */
export interface BasedText extends ObjectText {
  /** The object that the text is sent as a delta of. */
  readonly base: ObjectText
}

/** What every call of the client can be told. */
export interface CallOptions {
  /** Ends the call, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal
}

/** A list of ids, at once or as they come. */
export type Ids = Iterable<string> | AsyncIterable<string>

/** What the client needs of `fetch`. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>
