/// <reference types="node" preserve="true" />

export {
  type AutomationRunData, type FinalRunStatus, type JsonObject, type JsonValue, type LogLevel, type LogLine, mayFollow, type ObjectResult, type ResultLevel, RUN_STATUS_RANK, type RunFile,
  type RunReport, type RunStatus, type VersionTrigger,
} from './run-data.ts'
export type { NewArtifact, NewVersion, RunBackend, SignalOptions, TriggeringVersion } from './run-backend.ts'
