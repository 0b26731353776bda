/** An object that somebody still wants, with everything below it: it and that must not be collected. */
export interface GraphRoot {
  /** The root of the graph that is wanted. */
  readonly rootObjectId: string
  /** `version` for a version of a model, `pin` for a pin; extensions may have kinds of their own. */
  readonly kind: string
  /** Names the root among those of its kind. */
  readonly id: string
  /** The group of several roots, such as the model of versions; `null` for a separate root. */
  readonly groupId: string | null
}

/** Keeps an object and everything below it. */
export interface Pin {
  /** 32 hex digits that sort by age. */
  readonly id: string
  readonly rootObjectId: string
  readonly name: string | null
  readonly reason: string | null
  /** ISO 8601, in UTC. */
  readonly createdAt: string
  /** From then on it keeps nothing; `null` for a pin without an end. */
  readonly endsAt: string | null
}

/** A thousand years: the longest period that a request or an option may name. Every time that it leads to has a date. */
export const PERIOD_MS_MAX: number = 1_000 * 366 * 86_400_000

/** A pin to create. */
export interface NewPin {
  readonly rootObjectId: string
  readonly name?: string | null
  readonly reason?: string | null
  /** ISO 8601, in UTC with milliseconds. */
  readonly endsAt?: string | null
  /** How long the pin keeps the object, from its creation on by the clock of the server. Of both ends, the earlier counts. */
  readonly lifetimeMs?: number | undefined
}

/** The pins of projects. A pin whose end has come is gone. */
export interface PinStore {
  /**
   * Throws `objects_missing` if the object is not held, `invalid_request` for an end that has passed or cannot be,
   * `conflict` when the project has as many pins as it may.
   */
  add(projectId: string, wanted: NewPin): Promise<Pin>
  /**
   * Keeps a pin of another server under its own id. `false` if there is one of that id, or if its end has come. Throws
   * `objects_missing` and `conflict` as `add` does.
   */
  take(projectId: string, pin: Pin): Promise<boolean>
  /** The oldest first; empty for a project that does not exist. */
  list(projectId: string): Promise<readonly Pin[]>
  /** Throws `not_found`. */
  remove(projectId: string, pinId: string): Promise<void>
}

/** The objects below something, and those that nothing else holds. */
export interface UsageShare {
  readonly objects: number
  readonly jsonBytes: number
  /** Objects, and their bytes of JSON, that can be reached from here alone. */
  readonly ownObjects: number
  readonly ownJsonBytes: number
}

/** The usage of one root. */
export interface RootUsage extends UsageShare, GraphRoot {}

/** The usage of all roots of a group together, such as the versions of a model. */
export interface GroupUsage extends UsageShare {
  readonly groupId: string
  readonly roots: number
}

/** The usage of a project. */
export interface ProjectUsage {
  readonly objects: number
  readonly jsonBytes: number
  /** Bytes of its packs in storage, compressed, with their tables. */
  readonly storedBytes: number
  /** Bytes of packs that a merge replaced, and that stay in storage for a day. */
  readonly retiredBytes: number
  /** Bytes of its plans in storage, with those that were replaced and stay for a day. */
  readonly planBytes: number
  /** Objects that no version and no pin leads to. */
  readonly unreferencedObjects: number
  readonly unreferencedJsonBytes: number
  readonly groups: readonly GroupUsage[]
  readonly roots: readonly RootUsage[]
}

/** Counts what projects hold. */
export interface UsageCounter {
  /**
   * Throws `overloaded` if the counting takes longer than a request may wait. The counting continues, so a later call
   * succeeds.
   */
  usage(
    projectId: string,
    roots: readonly GraphRoot[],
    options: { readonly signal: AbortSignal },
  ): Promise<ProjectUsage>
}
