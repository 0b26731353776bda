import { expectAssignable, expectError, expectType } from 'tsd'
import type { Model, Run, RunFilter, Version } from 'stowage/automation/server'
import type {
  Client,
  DagObject,
  RemoteModel,
  RemotePage,
  RemoteRun,
  RemoteRunFilter,
  RemoteVersion,
} from 'stowage/client'
import {
  type AutomationContext,
  type AutomationFunction,
  type AutomationRunData,
  defineFunction,
  defineInputs,
  executeFunction,
  type JsonObject,
  number,
  RunCanceled,
  RunFailed,
  type RunStatus,
  secret,
  type Secret,
} from 'stowage/automation'
import {
  failCurrentRun,
  httpRunBackend,
  type RunBackend,
  type RunFile,
  runFunction,
  type RunOutcome,
  startRun,
} from 'stowage/automation/runtime'
import { testFunction, type TestedRun } from 'stowage/automation/testing'
import { z } from 'zod'

class Inputs extends defineInputs({ tolerance: number({ default: 10 }), key: secret({ required: false }) }) {}

async function body(context: AutomationContext<Inputs>, inputs: Inputs): Promise<void> {
  expectType<number>(inputs.tolerance)
  expectType<Secret | undefined>(inputs.key)
  expectType<AutomationRunData>(context.automationRunData)
  expectType<string>(context.automationRunData.projectId)
  expectType<Client>(context.serviceClient)
  const project = context.serviceClient.project('project')
  expectType<RemotePage<RemoteModel>>(await project.models.list({ limit: 10 }))
  expectType<RemoteVersion>(await project.versions.get('model', 'version'))
  expectType<RemoteRun>(await project.runs.get('run'))
  expectError(project.runs.list({ status: 'done' }))
  // The same words on both sides.
  expectAssignable<RemoteModel>({} as Model)
  expectAssignable<Model>({} as RemoteModel)
  expectAssignable<RemoteVersion>({} as Version)
  expectAssignable<Version>({} as RemoteVersion)
  expectAssignable<RemoteRun>({} as Run)
  expectAssignable<Run>({} as RemoteRun)
  expectAssignable<RemoteRunFilter>({} as RunFilter)
  expectType<Inputs>(context.functionInputs)
  expectType<RunStatus>(context.status)
  expectType<AbortSignal>(context.signal)
  expectType<DagObject>(await context.receiveVersion())
  for await (const batch of context.objects()) {
    expectType<readonly DagObject[]>(batch)
    context.attachErrorToObjects('category', batch, 'message', { any: ['json', 1, null] })
  }
  context.attachWarningToObjects('category', ['id'], 'message')
  context.attachWarningToObjects('category', ['id'], 'message', null)
  expectError(context.attachWarningToObjects('category', ['id'], 'message', 'text'))
  context.attachSuccessToObjects('category', [{ id: 'id', applicationId: 'app' }], 'message')
  context.attachInfoToObjects('category', ['id', { id: 'id' }, { referencedId: 'id' }], 'message', {})
  context.attachInfoToObjects('category', ['id'], 'message', null)
  expectType<Promise<string>>(
    context.createNewVersionInProject('project', { name: 'value' }, 'message', { modelId: 'model' }),
  )
  expectType<Promise<string>>(context.storeFileResult('path', 'name'))
  expectType<void>(context.progress(0.5, 'half'))
  expectType<void>(context.log.info('message', { count: 1 }))
  expectType<void>(context.markRunSuccess('message', { count: 1 }))
  context.markRunFailed('message')
  context.markRunException(new Error('message'))

  // What the contract requires cannot be left out.
  expectError(context.markRunSuccess())
  expectError(context.attachErrorToObjects('category', ['id']))
  expectError(context.attachErrorToObjects('category', 'id', 'message'))
  expectError(context.attachErrorToObjects('category', [{ name: 'no id' }], 'message'))
  expectError(context.attachErrorToObjects('category', ['id'], 'message', { no: () => 'json' }))
  expectError(context.createNewVersionInProject('project', 'a primitive value', 'message'))
  expectError(context.storeFileResult('path'))
  expectError((context.functionInputs = inputs))
}

expectType<AutomationFunction>(executeFunction(body, Inputs))
expectType<AutomationFunction>(
  executeFunction(body, Inputs, {
    name: 'name',
    description: 'text',
    defaultStatus: 'success',
    graceMs: 5,
    main: false,
  }),
)
expectType<Promise<TestedRun>>(testFunction(body, Inputs, { object: {}, inputs: { tolerance: 3 } }))
expectType<Promise<TestedRun>>(testFunction(executeFunction(body, Inputs), { object: {} }))
expectError(testFunction(body, Inputs, { inputs: {} }))
expectError(testFunction(executeFunction(body, Inputs), { object: {}, graceMs: 3 }))
expectError(executeFunction((_: AutomationContext<Inputs>, inputs: { other: string }) => void inputs, Inputs))
expectError(executeFunction(body, Inputs, { defaultStatus: 'failed' }))

// Schemas of other libraries; bodies without a type get it from them.
executeFunction(
  (context, inputs) => {
    expectType<string>(inputs.name)
    context.markRunSuccess(inputs.name)
  },
  z.object({ name: z.string() }),
)

declare const backend: RunBackend
declare const runFile: RunFile
const defined = defineFunction(body, Inputs)
expectAssignable<RunBackend>(httpRunBackend(runFile))
expectType<Promise<RunOutcome>>(
  runFunction(defined, {
    backend,
    runData: runFile.automationRunData,
    inputs: runFile.functionInputs,
    secrets: [runFile.speckleToken],
  }),
)
expectType<Promise<RunOutcome>>(
  startRun(defined, { backend, runData: runFile.automationRunData, inputs: null }).outcome,
)
expectType<boolean>(failCurrentRun(new Error('message')))
expectAssignable<Error>(new RunFailed('message'))
expectAssignable<Error>(new RunCanceled('message'))

const run = await testFunction(body, Inputs, { object: {} })
expectType<'succeeded' | 'failed' | 'exception' | 'canceled'>(run.status)
expectType<Uint8Array>(run.artifacts[0].bytes)
expectType<string>(run.versions[0].rootObjectId)
expectType<JsonObject | undefined>(run.result)
