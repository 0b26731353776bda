import { randomBytes } from 'node:crypto'
import type { Client } from '../../client/client.ts'
import { type AutomationFunction, defineFunction, type FunctionBody, type FunctionOptions } from '../author/function.ts'
import type { InferInputs, InputsSource } from '../author/inputs/resolve.ts'
import type { AutomationRunData, JsonObject, LogLine, Annotation } from '../author/run-data.ts'
import { runFunction } from '../runtime/run/run-function.ts'
import type { RunOutcome } from '../runtime/run/run-options.ts'
import { MemoryRunBackend, type TestArtifact, type TestVersion } from './memory-run-backend.ts'

/** Options of `testFunction`. */
export interface TestFunctionOptions extends FunctionOptions {
  /** As a runner would pass them: JSON, not yet checked. */
  readonly inputs?: JsonObject
  /** The model: a value as `createNewVersionInProject` takes it. */
  readonly object: object
  /** Cancels the run, or stops it: see `signal` of the context. */
  readonly signal?: AbortSignal
  /** The project of the run; `test` by default. */
  readonly projectId?: string
  /** 268,435,456 by default. */
  readonly artifactBytesMax?: number
}

/** The outcome of a run. */
export interface TestedRun {
  /** The final status. */
  readonly status: RunOutcome['status']
  /** The message of the final status. */
  readonly message: string
  /** The result that the function passed with its mark, if any. */
  readonly result: JsonObject | undefined
  /** The annotations, in the order in which the function made them. */
  readonly annotations: readonly Annotation[]
  /** The lines of the log. */
  readonly logs: readonly LogLine[]
  /** The last reported progress; `undefined` if there was none. */
  readonly progress: { readonly fraction: number; readonly message?: string } | undefined
  /** The created versions. */
  readonly versions: readonly TestVersion[]
  /** The stored files. */
  readonly artifacts: readonly TestArtifact[]
  /**
   * A client of the in-memory service that the run used: `project(projectId).receive(versions[0].rootObjectId)` returns
   * the contents of a version.
   */
  readonly client: Client
  /** The project of the run. */
  readonly projectId: string
}

/**
 * Runs a function as a server would, against its own service in the memory of this process: no network, no files. Takes
 * the same arguments as `executeFunction`, or the function that it returned. Resolves however the function ends. Errors
 * in timers and in promises that nothing awaits go to the test runner.
 */
export function testFunction(
  automationFunction: AutomationFunction,
  options: Omit<TestFunctionOptions, keyof FunctionOptions>,
): Promise<TestedRun>
/** The same for a body without `defineFunction`. Throws like `defineFunction`. */
export function testFunction<Source extends InputsSource>(
  body: FunctionBody<InferInputs<Source>>,
  Inputs: Source,
  options: TestFunctionOptions,
): Promise<TestedRun>
export function testFunction(
  first: AutomationFunction | FunctionBody<object>,
  second: TestFunctionOptions | InputsSource,
  third?: TestFunctionOptions,
): Promise<TestedRun> {
  if (typeof first === 'object') return tested(first, second as TestFunctionOptions)
  const options = third as TestFunctionOptions
  return tested(defineFunction(first, second as InputsSource, options), options)
}

async function tested(automationFunction: AutomationFunction, options: TestFunctionOptions): Promise<TestedRun> {
  const { inputs = {}, object, signal, projectId = 'test', artifactBytesMax } = options
  /* Functions that run elsewhere need no service: it is loaded where it is used. */
  const { memoryService } = await import('./memory-service.ts')
  const { client } = memoryService()
  const { root } = await client.project(projectId).send(object)
  const trigger = { modelId: newId(), versionId: newId(), rootObjectId: root, message: 'the model of the test' }
  const backend = new MemoryRunBackend({
    client,
    projectId,
    trigger,
    ...(artifactBytesMax === undefined ? {} : { artifactBytesMax }),
  })
  const { status, message, result } = await runFunction(automationFunction, {
    backend,
    runData: runDataOf(projectId, trigger),
    inputs,
    ...(signal === undefined ? {} : { signal }),
  })
  const { annotations, logs, progress, versions, artifacts } = backend.reported
  return { status, message, result, annotations, logs, progress, versions, artifacts, client, projectId }
}

function runDataOf(
  projectId: string,
  { modelId, versionId }: { readonly modelId: string; readonly versionId: string },
): AutomationRunData {
  return {
    projectId,
    speckleServerUrl: 'http://in.process',
    automationId: newId(),
    automationRunId: newId(),
    functionRunId: newId(),
    triggers: [{ triggerType: 'versionCreation', payload: { modelId, versionId } }],
  }
}

function newId(): string {
  return randomBytes(16).toString('hex')
}
