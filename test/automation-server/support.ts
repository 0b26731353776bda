import type { TestContext } from 'node:test'
import {
  type Automation,
  automation,
  type AutomationExtension,
  type AutomationOptions,
  type AutomationProject,
  type FunctionDefinition,
  type NewAutomation,
  type RunExecutor,
  type RunStart,
  type SecretKey,
  type StopReason,
} from '../../src/automation-server/index.ts'
import type { RunReport } from '../../src/automation/runtime/index.ts'
import {
  type CommonServiceOptions,
  createObjectService,
  type ObjectService,
  openAccess,
  type StorageBackend,
} from '../../src/index.ts'
import { type Alone, openServers } from '../support/several-servers.ts'

export const SECRET_KEY: SecretKey = { id: 'first', key: new Uint8Array(32).fill(7) }

/** Runs what it is given; `stopped` tells the function why it is to stop. */
export function inProcess(work: (start: RunStart, stopped: Promise<StopReason>) => Promise<void>): RunExecutor {
  return {
    start: (start) => {
      let stop: (reason: StopReason) => void = () => undefined
      const stopped = new Promise<StopReason>((resolve) => {
        stop = resolve
      })
      return { cancel: (reason) => stop(reason), ended: work(start, stopped) }
    },
  }
}

/** Runs until it is told to stop, and reports nothing. */
export const waiting: RunExecutor = inProcess(async (_start, stopped) => void (await stopped))

/** Reports each of these and ends. */
export function reporting(...reports: readonly Omit<RunReport, 'sequence'>[]): RunExecutor {
  return inProcess(async ({ backend }) => {
    for (const [at, report] of reports.entries()) await backend.report({ sequence: at + 1, ...report })
  })
}

const INPUTS = {
  type: 'object',
  properties: {
    tolerance: { type: 'number', default: 10, exclusiveMinimum: 0 },
    apiKey: { type: 'string', format: 'password', writeOnly: true },
  },
}

export function definition(executor: RunExecutor, changes: Partial<FunctionDefinition> = {}): FunctionDefinition {
  return { id: 'checker', name: 'Checker', release: '1.0.0', inputs: INPUTS, executor, ...changes }
}

export interface Fixture {
  readonly backend: StorageBackend
  readonly service: ObjectService
  readonly extension: AutomationExtension
  readonly ask: (
    method: string,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ) => Promise<Asked>
}

export interface Asked {
  readonly status: number
  readonly headers: Headers
  readonly json: Readonly<Record<string, never>> & { readonly [name: string]: never }
}

export type FixtureOptions = AutomationOptions & {
  readonly backend?: StorageBackend
  readonly service?: Partial<CommonServiceOptions<unknown>>
  /** Why the test cannot run on three servers, if it cannot. A backend of its own is a reason already. */
  readonly alone?: string
}

/**
 * A service with automation over a backend in memory, open to everybody unless told otherwise; it ends with the test.
 */
export function automated(
  t: TestContext,
  { backend: own, service: serviceOptions = {}, alone, ...options }: FixtureOptions = {},
): Fixture {
  const { backend, service, extension } = openServers<Omit<Fixture, 'ask'>>(
    (backend) => {
      const extension = automation({ secretKeys: [SECRET_KEY], ...options })
      const extensions = [extension]
      const service = createObjectService({ backend, access: openAccess(), ...serviceOptions, extensions })
      return { backend, service, extension }
    },
    aloneFor(t, own, alone),
  )
  t.after(() => service.close({ graceMs: 100 }))
  const ask: Fixture['ask'] = async (method, path, body, headers = {}) => {
    const init: RequestInit =
      body === undefined
        ? { method, headers }
        : {
            method,
            headers: { 'Content-Type': 'application/json', ...headers },
            body: typeof body === 'string' ? body : JSON.stringify(body),
          }
    const response = await service.fetch(new Request(`http://in.process/api/v1/projects/${path}`, init))
    const text = await response.text()
    return { status: response.status, headers: response.headers, json: text === '' ? {} : JSON.parse(text) }
  }
  return { backend, service, extension, ask }
}

function aloneFor(t: TestContext, backend: StorageBackend | undefined, reason?: string): Alone | undefined {
  if (backend !== undefined) return { test: t.name, reason: reason ?? 'has a storage of its own', backend }
  return reason === undefined ? undefined : { test: t.name, reason }
}

export async function uploadObjects(
  service: ObjectService,
  projectId: string,
  objects: readonly unknown[],
): Promise<void> {
  await service.project(projectId).upload(
    (async function* () {
      yield Buffer.from(JSON.stringify(objects))
    })(),
    'application/json',
  )
}

/** A project with a root, a model, and a version of it. */
export async function withVersion(
  { service, extension }: Pick<Fixture, 'service' | 'extension'>,
  projectId = 'p',
): Promise<{ readonly modelId: string; readonly versionId: string }> {
  await uploadObjects(service, projectId, [
    { id: 'root', children: [{ referencedId: 'leaf' }], __closure: { leaf: 1 } },
    { id: 'leaf' },
  ])
  const { models, versions } = extension.project(projectId)
  const { id: modelId } = await models.create({ name: 'House' })
  const { id: versionId } = await versions.create(modelId, { rootObjectId: 'root', message: 'first' })
  return { modelId, versionId }
}

/** The same with an automation of the function "checker" for the model, started by hand unless told otherwise. */
export async function withAutomation(
  fixture: Pick<Fixture, 'service' | 'extension'>,
  changes: Partial<NewAutomation> = {},
  projectId = 'p',
): Promise<{
  readonly project: AutomationProject
  readonly automation: Automation
  readonly modelId: string
  readonly versionId: string
}> {
  const ids = await withVersion(fixture, projectId)
  const project = fixture.extension.project(projectId)
  const automation = await project.automations.create({
    name: 'Check',
    functionId: 'checker',
    modelId: ids.modelId,
    inputs: {},
    trigger: 'manual',
    ...changes,
  })
  return { project, automation, ...ids }
}

export interface RunningFixture extends Fixture {
  readonly project: AutomationProject
  readonly automation: Automation
  readonly id: string
  readonly start: RunStart
  /** What the run shows when it asks over HTTP. */
  readonly token: Readonly<Record<string, string>>
  readonly report: (report: RunReport) => Promise<void>
}

/** An executor whose run goes on until it is stopped, and how that run was started. */
export function heldRun(): { readonly executor: RunExecutor; readonly starting: Promise<RunStart> } {
  let started: (start: RunStart) => void = () => undefined
  const starting = new Promise<RunStart>((resolve) => {
    started = resolve
  })
  const executor = inProcess(async (start, stopped) => {
    started(start)
    await stopped
  })
  return { executor, starting }
}

/** A run that goes on until the test ends. */
export async function running(t: TestContext, options: FixtureOptions = {}): Promise<RunningFixture> {
  const { executor, starting } = heldRun()
  const fixture = automated(t, { functions: [definition(executor)], ...options })
  const { project, automation } = await withAutomation(fixture, { inputs: { apiKey: 'hush' } })
  const { id } = await project.runs.start(automation.id)
  const start = await starting
  const token = { Authorization: `Bearer ${start.runFile.speckleToken}` }
  return {
    ...fixture,
    project,
    automation,
    id,
    start,
    token,
    report: (report: RunReport) => start.backend.report(report),
  }
}
