import { expectAssignable, expectError, expectType } from 'tsd'
import { createObjectService, folderCredentials, openAccess, type ServiceExtension } from 'stowage'
import {
  type AutomationFunction,
  defineFunction,
  defineInputs,
  type JsonObject,
  number,
  type Annotation,
  type RunStatus,
} from 'stowage/automation'
import type { InputsSchema, LogLine, RunBackend, RunFile } from 'stowage/automation/runtime'
import {
  type Automation,
  automation,
  type AutomationChange,
  type AutomationExtension,
  type AutomationLimits,
  type AutomationOptions,
  type AutomationProject,
  type AutomationTrigger,
  type CommandFunction,
  type CommandOptions,
  DEFAULT_AUTOMATION_LIMITS,
  DEFAULT_RUN_TIMES,
  type FunctionDefinition,
  type FunctionInfo,
  type InProcessFunction,
  type Model,
  type NewAutomation,
  type NewModel,
  type NewModelVersion,
  type Page,
  type PageRequest,
  type ProjectAutomations,
  type ProjectModels,
  type ProjectRuns,
  type ProjectVersions,
  readCommandSchema,
  type FunctionRegistration,
  type AnnotationFilter,
  type Run,
  type RunArtifact,
  type RunCause,
  type RunDetails,
  type RunExecutor,
  type RunFilter,
  type RunHandle,
  type RunStart,
  type RunTimes,
  type SecretKey,
  type SecretKeySource,
  storedSecretKeys,
  type StopReason,
  type Version,
} from 'stowage/automation/server'
import { memoryBackend } from 'stowage/memory'
import { pages, type PagesExtension } from 'stowage/pages'

class Inputs extends defineInputs({ tolerance: number({ default: 10 }) }) {}
const checker: AutomationFunction = defineFunction((context) => context.markRunSuccess('done'), Inputs, {
  name: 'Checker',
})

// The three ways to register a function.
const inProcess: InProcessFunction = { id: 'checker', release: '1.0.0', function: checker }
const command: CommandFunction = {
  id: 'takeoff',
  name: 'Take-off',
  release: '1',
  inputs: Inputs,
  command: ['node', 'takeoff.js'],
  memoryBytesMax: 1e9,
  killAfterMs: 100,
  outputBytesMax: 10,
  cwd: '.',
  env: { UNIT: 'mm' },
}
const executor: RunExecutor = {
  start: (start) => {
    expectType<RunStart>(start)
    expectType<string>(start.projectId)
    expectType<Run>(start.run)
    expectType<RunFile>(start.runFile)
    expectType<RunBackend>(start.backend)
    expectType<readonly string[]>(start.secretTexts)
    expectType<number>(start.deadlineMs)
    expectType<Promise<void>>(start.addLogs([{ atMs: 0, level: 'info', message: 'text' }]))
    return {
      cancel: (reason, graceMs) => {
        expectType<StopReason>(reason)
        expectType<number | undefined>(graceMs)
      },
      ended: Promise.resolve(),
    }
  },
}
const own: FunctionDefinition = {
  id: 'own',
  name: 'Own',
  release: '1',
  inputs: Inputs.toJSONSchema() as unknown as Readonly<Record<string, unknown>>,
  executor,
}
expectAssignable<readonly FunctionRegistration[]>([inProcess, command, own])
expectAssignable<RunHandle>({ cancel: () => undefined, ended: Promise.resolve('why it ended') })
expectError<RunExecutor>({ start: () => undefined })
expectError<InProcessFunction>({ id: 'checker', function: checker })
expectError<CommandFunction>({
  id: 'takeoff',
  name: 'Take-off',
  release: '1',
  inputs: Inputs,
  command: 'node takeoff.js',
})
expectAssignable<CommandOptions>({ command: ['true'] })
expectType<Promise<Readonly<Record<string, unknown>>>>(readCommandSchema({ command: ['node', 'takeoff.js'] }))

// Options.
const key: SecretKey = { id: 'first', key: new Uint8Array(32) }
expectAssignable<AutomationOptions>({
  functions: [inProcess, command, own],
  secretKeys: [key],
  limits: { artifactsMax: 3 },
  concurrency: 1,
  attemptsMax: 2,
  leaseMs: 1,
  runMsMax: 1,
  sweepIntervalMs: 1,
  runRetentionMs: 1,
})
expectAssignable<AutomationOptions>({ serverUrl: async () => 'https://models.example' })
expectError(automation({ secretKeys: ['text'] }))
expectError(automation({ limits: { artifacts: 3 } }))
expectError(automation({ functions: [checker] }))
expectType<AutomationLimits>(DEFAULT_AUTOMATION_LIMITS)
expectType<RunTimes>(DEFAULT_RUN_TIMES)
expectError((DEFAULT_RUN_TIMES.leaseMs = 1))
expectType<SecretKeySource>(storedSecretKeys(folderCredentials('folder')))
expectAssignable<AutomationOptions>({ secretKeys: storedSecretKeys(folderCredentials('folder')) })
expectAssignable<AutomationOptions>({ secretKeys: { read: async () => [key] } })

// The extension of a service, and what is done with it in process.
const extension = automation({ functions: [inProcess] })
expectType<AutomationExtension>(extension)
expectAssignable<ServiceExtension>(extension)
createObjectService({
  backend: memoryBackend(),
  access: openAccess(),
  extensions: [extension, pages({ automation: extension })],
})
expectType<PagesExtension>(pages({ automation: extension }))
expectError(pages({}))
expectError(createObjectService({ backend: memoryBackend(), access: openAccess(), extensions: [automation] }))
expectType<FunctionInfo>(extension.register(command))
expectType<readonly FunctionInfo[]>(extension.functions())
expectType<InputsSchema>(extension.functions()[0].inputs)
expectType<Promise<void>>(extension.idle())

const project: AutomationProject = extension.project('demo')
expectType<ProjectModels>(project.models)
expectType<ProjectVersions>(project.versions)
expectType<ProjectAutomations>(project.automations)
expectType<ProjectRuns>(project.runs)

expectType<Promise<Model>>(project.models.create({ name: 'House' }))
expectType<Promise<Page<Model>>>(project.models.list({ limit: 10, cursor: 'c' }))
expectAssignable<NewModel>({ name: 'House' })
expectError(project.models.create({}))
expectError(project.models.list({ page: 2 }))
expectAssignable<PageRequest>({})

const version: NewModelVersion = { rootObjectId: 'root', message: 'first', source: null }
expectType<Promise<Version>>(project.versions.create('model', version, { signal: new AbortController().signal }))
expectType<Promise<Page<Version>>>(project.versions.list('model'))
expectError(project.versions.create('model', { rootObjectId: 'root' }))
expectError(project.versions.get('version'))

const wanted: NewAutomation = {
  name: 'Check',
  functionId: 'checker',
  modelId: 'model',
  inputs: { tolerance: 1 },
  trigger: 'version',
}
expectType<Promise<Automation>>(project.automations.create(wanted))
expectAssignable<AutomationChange>({ enabled: false })
expectError(project.automations.create({ ...wanted, trigger: 'always' }))
expectError(project.automations.change('id', { functionId: 'other' }))
expectType<Promise<void>>(project.automations.remove('id'))
expectAssignable<AutomationTrigger>('manual')

expectType<Promise<Run>>(project.runs.start('automation', { versionId: 'version' }))
expectType<Promise<RunDetails>>(project.runs.get('run'))
expectType<Promise<Page<Run>>>(project.runs.list({ status: 'running', modelId: 'model' }))
expectType<Promise<Page<Annotation>>>(
  project.runs.annotations('run', { level: 'ERROR', category: 'rule', objectId: 'wall' }),
)
expectType<Promise<Page<LogLine>>>(project.runs.logs('run', { limit: 1 }))
expectAssignable<RunFilter>({ versionId: 'version' })
expectAssignable<AnnotationFilter>({ level: 'INFO' })
expectError(project.runs.list({ status: 'done' }))
expectError(project.runs.annotations('run', { level: 'error' }))
expectError(project.runs.start('automation', 'version'))

async function look(runs: ProjectRuns): Promise<void> {
  const run = await runs.get('run')
  expectType<RunStatus>(run.status)
  expectType<RunCause>(run.triggeredBy)
  expectType<readonly RunArtifact[]>(run.artifacts)
  expectType<JsonObject | null>(run.result)
  expectType<number>(run.annotations.ERROR)
  expectError((run.status = 'failed'))
  const listed = (await runs.list()).items[0]
  expectType<Run>(listed)
  expectError(listed.result)
}
expectType<Promise<void>>(look(project.runs))
