import type { JsonObject } from './json.ts'

/* Generated from the shapes of the wire (`src/openapi/description/shape.ts`): run `npm run schemas`. */

/** The severity of an annotation. */
export type AnnotationLevel = 'SUCCESS' | 'INFO' | 'WARNING' | 'ERROR'

/** The severity of a line of a run's log. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** An annotation: a statement of a function about objects of the model. */
export interface Annotation {
  /** Groups annotations that belong together, such as the name of a rule. */
  readonly category: string
  /** The severity. */
  readonly level: AnnotationLevel
  /** The objects: the id in the application of each, by the id of the object; `null` if it has none. */
  readonly objectAppIds: { readonly [name: string]: string | null }
  /** The message about the objects. */
  readonly message: string | null
  /** Further data from the function; at most 128 KiB of JSON. */
  readonly metadata: JsonObject | null
}

/** One line of a run's log. */
export interface LogLine {
  /** Milliseconds since 1970, by the clock of the run. */
  readonly atMs: number
  /** The severity. */
  readonly level: LogLevel
  /** The text of the line. */
  readonly message: string
}

/** A report of a run. Absent members change nothing. */
export interface RunReport {
  /**
   * 1, 2, 3 ... within a run. A report that was already accepted changes nothing, so a report can be
   * sent again.
   */
  readonly sequence: number
  /** The new status. */
  readonly status?: 'initializing' | 'running' | 'succeeded' | 'failed' | 'exception'
  /** With a status. */
  readonly message?: string
  /** With a final status: a result for people and programs that look at the run; at most 128 KiB of JSON. */
  readonly result?: JsonObject
  /** The progress of the run. */
  readonly progress?: {
    /** The share that is done, from 0 to 1. */
    readonly fraction: number
    readonly message?: string
  }
  /** Added to those of earlier reports. */
  readonly annotations?: readonly Annotation[]
  /** Added to the log. */
  readonly logs?: readonly LogLine[]
}
