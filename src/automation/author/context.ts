import type { Client } from '../../client/client.ts'
import type { DagObject } from '../../client/common/types.ts'
import type { AutomationRunData, JsonObject, RunStatus } from './run-data.ts'

/**
 * An object that an annotation is about: its id, a reference to it, or the object itself, whose `applicationId` is then
 * reported too.
 */
export type AnnotatedObject =
  | string
  | { readonly id: string; readonly applicationId?: unknown }
  | { readonly referencedId: string }

/** Lines for readers of the run. Fields are shown after the message. */
export interface RunLog {
  /** For debugging. */
  debug(message: string, fields?: object): void
  /** An event. */
  info(message: string, fields?: object): void
  /** A possible problem. */
  warn(message: string, fields?: object): void
  /** A problem. */
  error(message: string, fields?: object): void
}

/** Options of `createNewVersionInProject`. */
export interface NewVersionOptions {
  /** The model of the new version. The model of the triggering version by default; required in another project. */
  readonly modelId?: string
}

/**
 * The context of a function: the model, its inputs, and the reports of the run. Messages, categories, metadata and
 * names leave the process without the values of secret inputs and of the token. A run has exactly one mark. Marks,
 * annotations, log lines and progress are accepted at once and delivered in the background, in order, with retries.
 * Calls that have begun are completed after the function returns; from then on every method throws, or rejects with,
 * `StowageError` `conflict`.
 */
export interface AutomationContext<Inputs = unknown> {
  /** The data of the run: its ids and its triggers. */
  readonly automationRunData: AutomationRunData
  /** Authenticated for the run's project, until the run ends. */
  readonly serviceClient: Client
  /** The checked inputs. */
  readonly functionInputs: Inputs
  /** `running`, and the marked status from the mark on. */
  readonly status: RunStatus
  /**
   * Aborts when the run is canceled or its process is asked to stop. The function then has a grace period to return.
   */
  readonly signal: AbortSignal
  /** The log of the run. */
  readonly log: RunLog
  /**
   * The whole triggering model, in memory: references are the objects that they name, shared ones are the same object.
   * Rejects with `ClientError`, and with the reason of `signal`.
   */
  receiveVersion(): Promise<DagObject>
  /**
   * The same model in batches, the root first, each object once, with its references as they are stored: for models
   * larger than memory.
   */
  objects(): AsyncIterable<readonly DagObject[]>
  /**
   * The function succeeded. Throws `conflict` for a second mark, `TypeError` for an empty message and `invalid_request`
   * for a result that is too large or too deep; so do the next two.
   */
  markRunSuccess(message: string, result?: JsonObject | null): void
  /** The model breaks the rules that the function checks. */
  markRunFailed(message: string, result?: JsonObject | null): void
  /** Something went wrong that has nothing to do with the model. */
  markRunException(message: string | Error): void
  /**
   * Reports a fault of objects, under a category that groups annotations. Throws `TypeError` for an empty category,
   * message or list and for metadata that JSON cannot hold, `invalid_request` for values that are too large or too
   * deep, `invalid_id` for an invalid id, and `overloaded` if too much is already waiting for delivery.
   */
  attachErrorToObjects(
    category: string,
    objects: readonly AnnotatedObject[],
    message: string,
    metadata?: JsonObject | null,
  ): void
  /** Reports objects that need attention. Throws like `attachErrorToObjects`. */
  attachWarningToObjects(
    category: string,
    objects: readonly AnnotatedObject[],
    message: string,
    metadata?: JsonObject | null,
  ): void
  /** Reports objects that are right. Throws like `attachErrorToObjects`. */
  attachSuccessToObjects(
    category: string,
    objects: readonly AnnotatedObject[],
    message: string,
    metadata?: JsonObject | null,
  ): void
  /** Reports information about objects. Throws like `attachErrorToObjects`. */
  attachInfoToObjects(
    category: string,
    objects: readonly AnnotatedObject[],
    message: string,
    metadata?: JsonObject | null,
  ): void
  /**
   * Turns a value into objects, uploads those that the project lacks and makes a version of them: unchanged parts of a
   * received model keep their ids. Resolves to the version's id. Rejects with `ClientError`, and `StowageError` in
   * process.
   */
  createNewVersionInProject(
    projectId: string,
    data: object,
    message: string,
    options?: NewVersionOptions,
  ): Promise<string>
  /**
   * Stores a file under a display name, streamed. Resolves to the artifact's id. Rejects with the error of the file
   * system, `invalid_request` and `artifact_too_large`.
   */
  storeFileResult(filePath: string, fileName: string): Promise<string>
  /** The progress of the function, between 0 and 1. Throws `RangeError`. */
  progress(fraction: number, message?: string): void
}
