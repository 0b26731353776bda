import type { StowageErrorCode } from '../errors.ts'
import type { Limits } from '../limits.ts'

/** What all events have. Ids are as clients sent them, checked and at most 512 bytes long; texts of objects and tokens are in no event. */
export interface ServiceEventBase {
  /** The service that tells it: its option `name`, or some hex digits. */
  readonly service: string
  /** As in the answer's header `x-request-id`. Absent for calls in process and for work beside requests. */
  readonly requestId?: string
  readonly projectId?: string
}

/** An upload was stored. */
export interface UploadEvent extends ServiceEventBase {
  readonly type: 'upload'
  readonly projectId: string
  /** Objects that came, each id once; how many of them were new; and how many came with another text than the one that is held. */
  readonly objects: number
  readonly created: number
  readonly differing: number
  /** Bytes of the body as it came. */
  readonly bytes: number
  readonly durationMs: number
}

/** Objects were sent, or as many of them as the client took. */
export interface DownloadEvent extends ServiceEventBase {
  readonly type: 'download'
  readonly projectId: string
  /** Objects of the whole answer, and how many that were asked for or referred to are not held. */
  readonly objects: number
  readonly missing: number
  /** Whether every byte was known before the first one. */
  readonly isPlanned: boolean
  /** Whether the answer was read to its end. */
  readonly isComplete: boolean
  /** Bytes of the body that were sent. In process: bytes of the objects' lines. */
  readonly bytes: number
  readonly durationMs: number
}

/** A request over HTTP is over. */
export interface RequestEvent extends ServiceEventBase {
  readonly type: 'request'
  readonly requestId: string
  readonly method: string
  /** The path with the names of its parameters, such as `/objects/:projectId`; absent for a path that there is not. */
  readonly route?: string
  readonly status: number
  readonly code?: StowageErrorCode
  /** Bytes of the body that were read, and of the answer's body that were sent. */
  readonly bytesReceived: number
  readonly bytesSent: number
  readonly isComplete: boolean
  readonly durationMs: number
}

/** A request failed, whether or not it could be answered. That a client went away is no failure. */
export interface FailureEvent extends ServiceEventBase {
  readonly type: 'error'
  readonly status: number
  readonly code: StowageErrorCode
  readonly isRetryable: boolean
}

/** A request was refused at a bound: one of `limits`, `memory` for the memory of all requests together, or `quota` for a project's. */
export interface LimitEvent extends ServiceEventBase {
  readonly type: 'limit'
  readonly limit: keyof Limits | 'memory' | 'quota'
  readonly status: number
  readonly code: StowageErrorCode
}

/** Objects came whose ids are held with another text. The held ones stay. */
export interface DifferingEvent extends ServiceEventBase {
  readonly type: 'differing'
  readonly projectId: string
  /** How many, and the first hundred of their ids. */
  readonly differing: number
  readonly ids: readonly string[]
}

/** What was read from the storage does not match its checksum, or is not there. `stowage check` tells more. */
export interface FindingEvent extends ServiceEventBase {
  readonly type: 'finding'
  readonly code: 'corrupt_data'
}

/** What happens in a service, told apart by `type`. Facts only: never tokens, never the text of objects. */
export type ServiceEvent =
  | UploadEvent
  | DownloadEvent
  | RequestEvent
  | FailureEvent
  | LimitEvent
  | DifferingEvent
  | FindingEvent

/** The channels of `node:diagnostics_channel`, by the type of the event that is published on each. All services of the process publish on the same. */
export const EVENT_CHANNELS: { readonly [T in ServiceEvent['type']]: `stowage:${T}` } = {
  upload: 'stowage:upload',
  download: 'stowage:download',
  request: 'stowage:request',
  error: 'stowage:error',
  limit: 'stowage:limit',
  differing: 'stowage:differing',
  finding: 'stowage:finding',
}

/** The option whose bound a code stands for. */
export const LIMIT_OF_CODE: { readonly [C in StowageErrorCode]?: LimitEvent['limit'] } = {
  object_too_large: 'objectBytesMax',
  request_too_large: 'requestBytesMax',
  inflated_too_large: 'inflatedBytesMax',
  too_many_objects: 'objectsMax',
  nesting_too_deep: 'nestingMax',
  too_many_parts: 'partsMax',
  part_header_too_large: 'partHeaderBytesMax',
  id_list_too_large: 'idListBytesMax',
  memory_limit_exceeded: 'memory',
  overloaded: 'memory',
  quota_exceeded: 'quota',
}
