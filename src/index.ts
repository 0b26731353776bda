/// <reference types="node" preserve="true" />

/**
 * The service, its access control, and the seams for your own storage.
 *
 * @module stowage
 *
 * @example
 * import { createServer } from 'node:http'
 * import { answerClientErrors, createObjectService, openAccess } from 'stowage'
 * import { memoryBackend } from 'stowage/memory'
 *
 * const service = createObjectService({ backend: memoryBackend(), access: openAccess() })
 * const server = createServer(service.node)
 * answerClientErrors(server)
 * server.listen(8080)
 */

export { continueOnExpect, createObjectService } from './service/service.ts'
export type { Endpoint, Endpoints, ObjectService } from './service/object-service.ts'
export type {
  CommonServiceOptions,
  ErrorContext,
  ObjectServiceOptions,
  ServiceQuota,
  ServiceStorage,
} from './service/options.ts'
export type { GraphRoot } from './object/roots.ts'
export { folderCredentials } from './credentials/folder-credentials.ts'
export { recordCredentials } from './credentials/record-credentials.ts'
export { SealedRecords, type SealedRecordsOptions } from './credentials/sealed-records.ts'
export type { CredentialGroup, CredentialStore } from './credentials/credential-store.ts'
export type { ServiceExtension } from './service/extension.ts'
export type { Mountable } from './http/service-router.ts'
export type { Logger } from './logger.ts'
export {
  EVENT_CHANNELS,
  type DifferingEvent,
  type DownloadEvent,
  type FailureEvent,
  type ServiceEventBase,
  type CollectionEvent,
  type CompactionEvent,
  type DeletionEvent,
  type PinEvent,
  type FindingEvent,
  type LimitEvent,
  type RequestEvent,
  type ServiceEvent,
  type UploadEvent,
} from './events/events.ts'
export type { ServiceListener } from './events/event-dispatcher.ts'
export type { ServiceState, ServiceStatus } from './service/status.ts'
export type { MemoryInUse, ProjectQuota, ProjectSize, ProjectTotals, StoreTotals } from './object/graph-store.ts'
export type { TrustProxy } from './http/client-address.ts'
export { answerClientErrors } from './http/client-errors.ts'
export { type ConnectionLimitEvent, type ConnectionLimitOptions, limitConnections } from './http/connection-limits.ts'
export type { CorsOptions } from './http/cors.ts'
export type { MountedRequest, Next } from './http/node.ts'
export type { EndpointName, Params, Route } from './http/object-routes.ts'
export type { MountPoint } from './http/router.ts'
export type {
  ChosenReport,
  CollectedAmount,
  CollectionCause,
  CollectionProgress,
  CollectionReport,
  ObjectAmount,
  UnreferencedCursor,
  UnreferencedObject,
  UnreferencedPage,
} from './object/collection.ts'
export type { CompactionProgress, CompactionReport, DamagedPack } from './object/compaction.ts'
export type {
  CollectAllOptions,
  CollectionTotals,
  CompactAllOptions,
  CompactionTotals,
} from './service/all-projects.ts'
export type {
  CollectCallOptions,
  CompactCallOptions,
  ProjectUpkeep,
  UnreferencedCallOptions,
} from './service/project-upkeep.ts'
export type { CollectionSettings } from './service/collection-settings.ts'
export type { CompactionSchedule } from './service/upkeep-schedule.ts'
export type { ProjectObjects } from './service/project-objects.ts'
export type {
  ByteEncoding,
  GraphCallOptions,
  GraphStreamOptions,
  ObjectIds,
  ObjectStreamOptions,
  ProjectStreams,
  UploadStream,
  UploadStreamOptions,
} from './service/project-streams.ts'
export type { AssignedId, UploadSummary } from './object/wire-types.ts'
export type { ObjectRecord } from './object/line.ts'
export type { ObjectStore, StoredObject } from './store/plain/object-store.ts'
export {
  type Access,
  type AccessRefusals,
  type AccessRequest,
  claimAuthorize,
  ALL_PROJECTS,
  type Principal,
  type AccessRight,
} from './access/access.ts'
export { jwtAccess, type JwtAccessOptions } from './access/jwt.ts'
export type { RequestRate } from './access/request-rate.ts'
export type { TokenKey } from './access/keys.ts'
export { openAccess } from './access/open.ts'
export type { Clock, Environment, HashKey, Timer } from './environment.ts'
export {
  CLIENT_ERROR_STATUS,
  ERROR_STATUS,
  type ErrorBody,
  isStowageError,
  type ServiceErrorCode,
  StowageError,
  type StowageErrorCode,
  type StowageErrorOptions,
} from './errors.ts'
export { DEFAULT_LIMITS, type Limits } from './limits.ts'
export type { StorageBackend } from './storage/backend.ts'
