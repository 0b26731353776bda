import type { StowageErrorCode } from '../errors.ts'
import type { Limits } from '../limits.ts'

/**
 * Members that all events have. Ids are as clients sent them, checked and at most 512 bytes long. No event contains
 * texts of objects or tokens.
 */
export interface ServiceEventBase {
  /** The service of the event: its option `name`, or some hex digits. */
  readonly service: string
  /** As in the answer's header `x-request-id`. Absent for calls in process and for work beside requests. */
  readonly requestId?: string
  /** The project, if there is one. */
  readonly projectId?: string
}

/** An upload was stored. */
export interface UploadEvent extends ServiceEventBase {
  /** The kind of the event. */
  readonly type: 'upload'
  /** The project. */
  readonly projectId: string
  /** Objects that arrived, each id once. */
  readonly objects: number
  /** Objects that were new. */
  readonly created: number
  /** Objects that were there with another text. */
  readonly differing: number
  /** Bytes of the body as received. */
  readonly bytes: number
  /** The time from the request to the end of the upload. */
  readonly durationMs: number
}

/** Objects were sent, or as many of them as the client took. */
export interface DownloadEvent extends ServiceEventBase {
  /** The kind of the event. */
  readonly type: 'download'
  /** The project. */
  readonly projectId: string
  /** Objects of the whole answer. */
  readonly objects: number
  /** Objects that were requested or are referred to, and are not held. */
  readonly missing: number
  /** Whether every byte was known before the first one. */
  readonly isPlanned: boolean
  /** Whether the response was read to its end. */
  readonly isComplete: boolean
  /** Bytes of the body that were sent. In process: bytes of the objects' lines. */
  readonly bytes: number
  /** The time from the request to the end of the answer. */
  readonly durationMs: number
}

/** A request over HTTP is over. */
export interface RequestEvent extends ServiceEventBase {
  /** The kind of the event. */
  readonly type: 'request'
  /** The `X-Request-Id` of the answer. */
  readonly requestId: string
  /** The method of the request. */
  readonly method: string
  /** The path with the names of its parameters, such as `/objects/:projectId`; absent for a path that there is not. */
  readonly route?: string
  /** The HTTP status. */
  readonly status: number
  /** The code of the error, if there was one. */
  readonly code?: StowageErrorCode
  /** Bytes of the request's body that were read. */
  readonly bytesReceived: number
  /** Bytes of the answer's body that were sent. */
  readonly bytesSent: number
  /** Whether the whole answer was sent. */
  readonly isComplete: boolean
  /** The time from the request to the end of the answer. */
  readonly durationMs: number
}

/** A request failed, whether or not a response could be sent. A client that disconnects is not a failure. */
export interface FailureEvent extends ServiceEventBase {
  /** The kind of the event. */
  readonly type: 'error'
  /** The HTTP status. */
  readonly status: number
  /** The code of the error. */
  readonly code: StowageErrorCode
  /** Whether the same request may succeed a little later. */
  readonly isRetryable: boolean
}

/**
 * A request was refused at a bound: one of `limits`, `memory` for the memory of all requests together, or `quota` for a
 * project's.
 */
export interface LimitEvent extends ServiceEventBase {
  /** The kind of the event. */
  readonly type: 'limit'
  /** The limit that was reached. */
  readonly limit: keyof Limits | 'memory' | 'quota'
  /** The HTTP status. */
  readonly status: number
  /** The code of the error. */
  readonly code: StowageErrorCode
}

/** Objects arrived whose ids are held with another text. The held ones stay. */
export interface DifferingEvent extends ServiceEventBase {
  /** The kind of the event. */
  readonly type: 'differing'
  /** The project. */
  readonly projectId: string
  /** The number of these objects. */
  readonly differing: number
  /** The first hundred of their ids. */
  readonly ids: readonly string[]
}

/** Data read from the storage does not match its checksum, or is missing. `stowage check` reports more. */
export interface FindingEvent extends ServiceEventBase {
  /** The kind of the event. */
  readonly type: 'finding'
  /** The code of the error. */
  readonly code: 'corrupt_data'
}

/** Objects of a project were condemned, freed or restored, by a request, a call in process or the schedule. */
export interface CollectionEvent extends ServiceEventBase {
  /** The kind of the event. */
  readonly type: 'collection'
  /** The project. */
  readonly projectId: string
  /** Objects that nothing leads to, from now on to be freed. */
  readonly condemnedObjects: number
  /** Their bytes of JSON. */
  readonly condemnedJsonBytes: number
  /** Objects that are gone for good. */
  readonly freedObjects: number
  /** Their bytes of JSON. */
  readonly freedJsonBytes: number
  /** Condemned objects that are live again, by an undo or because something leads to them again. */
  readonly restoredObjects: number
  /** Their bytes of JSON. */
  readonly restoredJsonBytes: number
  /** How long it took. */
  readonly durationMs: number
}

/** Packs of a project were merged. */
export interface CompactionEvent extends ServiceEventBase {
  /** The kind of the event. */
  readonly type: 'compaction'
  /** The project. */
  readonly projectId: string
  /** How many merges took effect. */
  readonly merges: number
  /** Active packs before. */
  readonly packsBefore: number
  /** Active packs after. */
  readonly packsAfter: number
  /** Bytes of active packs before. */
  readonly storedBytesBefore: number
  /** Bytes of active packs after. Replaced packs leave the disk a day later. */
  readonly storedBytesAfter: number
  /** How long it took. */
  readonly durationMs: number
}

/** A project, a model or a version was deleted or restored. */
export interface DeletionEvent extends ServiceEventBase {
  /** The kind of the event. */
  readonly type: 'deletion'
  /** The project. */
  readonly projectId: string
  /** The kind of what was deleted. */
  readonly kind: 'project' | 'model' | 'version'
  /** `expired`: a retention rule deleted it. `removed`: its grace has ended, and nothing can restore it. */
  readonly action: 'deleted' | 'expired' | 'restored' | 'removed'
  /** Names the model or version. */
  readonly id?: string
}

/** A pin was added or removed. A pin whose end comes is no event. */
export interface PinEvent extends ServiceEventBase {
  /** The kind of the event. */
  readonly type: 'pin'
  /** The project. */
  readonly projectId: string
  /** Whether it was added or removed. */
  readonly action: 'added' | 'removed'
  /** Names the pin. */
  readonly id: string
}

/** An event of a service; `type` distinguishes the kinds. Facts only: never tokens, never the text of objects. */
export type ServiceEvent =
  | UploadEvent
  | DownloadEvent
  | RequestEvent
  | FailureEvent
  | LimitEvent
  | DifferingEvent
  | FindingEvent
  | CollectionEvent
  | CompactionEvent
  | DeletionEvent
  | PinEvent

/**
 * The channels of `node:diagnostics_channel`, by the type of the event that is published on each. All services of the
 * process publish on the same.
 */
export const EVENT_CHANNELS: { readonly [T in ServiceEvent['type']]: `stowage:${T}` } = {
  upload: 'stowage:upload',
  download: 'stowage:download',
  request: 'stowage:request',
  error: 'stowage:error',
  limit: 'stowage:limit',
  differing: 'stowage:differing',
  finding: 'stowage:finding',
  collection: 'stowage:collection',
  compaction: 'stowage:compaction',
  deletion: 'stowage:deletion',
  pin: 'stowage:pin',
}

/** The option whose limit a code refers to. */
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
