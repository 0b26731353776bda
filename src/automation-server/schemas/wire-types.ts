import type { InputsSchema } from '../../automation/author/inputs/schema.ts'
import type { JsonObject } from '../../automation/author/json.ts'
import type { RunStatus, CreatedVersion, RunArtifact, Run, Pin } from '../../client/resources/wire-types.ts'

/* Generated from the shapes of the wire (`src/openapi/description/shape.ts`): run `npm run schemas`. */

/** A model to create. */
export interface NewModel {
  /** One line. */
  readonly name: string
}

/** Members that are left out stay as they are. */
export interface VersionChange {
  /** Whether no retention rule deletes it. */
  readonly kept?: boolean
}

/** A version that a run creates. `projectId` is the project of the run by default. */
export interface NewRunVersion {
  readonly projectId?: string
  readonly modelId: string
  /** The root of the graph that the version consists of. */
  readonly rootObjectId: string
  /** For people; it may have several lines. */
  readonly message: string
}

/**
 * A registered function. The operator of the server registers functions, never a client over HTTP,
 * because a function is code.
 */
export interface FunctionInfo {
  /** Names the function. */
  readonly id: string
  /** The name for people. */
  readonly name: string
  /** The description for people; empty if there is none. */
  readonly description: string
  /** The state of its code, such as `1.4.0` or a commit. */
  readonly release: string
  /** Changes with the release and with the inputs: hex digits of a digest of both. */
  readonly version: string
  /** The inputs as JSON Schema. */
  readonly inputs: InputsSchema
}

/** Inputs to validate. */
export interface InputsToValidate {
  /** Any JSON that may be inputs of the function. */
  readonly inputs: unknown
}

/** One fault of inputs. */
export interface InputsIssue {
  /** The name of the input; empty for the whole. */
  readonly path: string
  /** Continues the name of the input. It never holds a value. */
  readonly message: string
}

/** Whether the function accepts the inputs, and the faults. */
export interface InputsValidity {
  /** Whether the function accepts the inputs. */
  readonly valid: boolean
  readonly issues: readonly InputsIssue[]
}

/**
 * `version`: every new version of the model starts it, and it can be started by hand. `manual`: only
 * by hand.
 */
export type AutomationTrigger = 'version' | 'manual'

/** An automation to create. */
export interface NewAutomation {
  /** One line. */
  readonly name: string
  /** The function that runs. */
  readonly functionId: string
  /** The model on whose versions it runs. */
  readonly modelId: string
  /**
   * The inputs that the schema of the function describes, at most 262144 bytes of JSON. Secrets are
   * written and never read: each is shown as `******`.
   */
  readonly inputs: JsonObject
  /** Whether new versions start it, or only people. */
  readonly trigger: AutomationTrigger
  /** Whether new versions start it. It can be started by hand either way. `true` by default. */
  readonly enabled?: boolean
  /** Other projects in which its runs may read and write. The request must have the right to write there. */
  readonly projects?: readonly string[]
}

/** Members to change. `inputs` replaces all inputs; a secret with the value `******` keeps its value. */
export interface AutomationChange {
  /** One line. */
  readonly name?: string
  /**
   * The inputs that the schema of the function describes, at most 262144 bytes of JSON. Secrets are
   * written and never read: each is shown as `******`.
   */
  readonly inputs?: JsonObject
  /** Whether new versions start it, or only people. */
  readonly trigger?: AutomationTrigger
  /** Whether new versions start it. It can be started by hand either way. `true` by default. */
  readonly enabled?: boolean
  /** Other projects in which its runs may read and write. The request must have the right to write there. */
  readonly projects?: readonly string[]
}

/** A function that runs on the versions of a model, with inputs. */
export interface Automation {
  /** Names the automation. */
  readonly id: string
  /** One line. */
  readonly name: string
  /** The function that runs. */
  readonly functionId: string
  /** The model on whose versions it runs. */
  readonly modelId: string
  /**
   * The inputs that the schema of the function describes, at most 262144 bytes of JSON. Secrets are
   * written and never read: each is shown as `******`.
   */
  readonly inputs: JsonObject
  /** Whether new versions start it, or only people. */
  readonly trigger: AutomationTrigger
  /** Whether new versions start it. It can be started by hand either way. `true` by default. */
  readonly enabled: boolean
  /** Other projects in which its runs may read and write. The request must have the right to write there. */
  readonly projects: readonly string[]
  /** The time of creation. */
  readonly createdAt: string
  /** The time of the last change. */
  readonly updatedAt: string
}

/** The version to run on, and who runs the function. */
export interface RunStart {
  /** The latest one by default. */
  readonly versionId?: string
  /**
   * The caller runs the function on a machine of their own. The answer holds the token with which it
   * reports. `false` by default.
   */
  readonly external?: boolean
}

/** The report is stored. */
export interface ReportAccepted {}

/** The state of the run. */
export interface Lease {
  /** The current status. */
  readonly status: RunStatus
  /** Whether the run must stop, because nothing more from it is accepted. */
  readonly canceled: boolean
}

/** A new resource. */
export interface CreatedId {
  /** The id of the new resource. */
  readonly id: string
}

/** The first cause of a chain of runs, and the runs that resulted from it. */
export interface RunCauseCount {
  /** The version that a person or an application created, or the run that a person started. */
  readonly id: string
  /** Runs that resulted from it. */
  readonly runs: number
  /** Runs that were not started, because `runsMax` had resulted from it. */
  readonly notStarted: number
  /** The most runs that may result from it. */
  readonly runsMax: number
}

/** A run that was started by hand. */
export interface StartedRun extends Run {
  /** With `external`: the token of the run, with which the function reports. */
  readonly token?: string
}

/** A run that was requested by its id. */
export interface RunDetails extends Run {
  /** The result that the function passed with its mark; `null` if there is none. */
  readonly result: JsonObject | null
  /** The first cause of the chain of runs that this run belongs to. */
  readonly cause: RunCauseCount
}

/** The event `status`. */
export interface RunStatusChange {
  /** The new status. */
  readonly status: RunStatus
  /** The message about the status. */
  readonly message: string | null
}

/** The event `outputs`: all outputs so far. */
export interface RunOutputs {
  readonly createdVersions: readonly CreatedVersion[]
  readonly artifacts: readonly RunArtifact[]
}

/** All pins of a project, the oldest first. */
export interface PinList {
  readonly items: readonly Pin[]
}
