import type { TestContext } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import {
  type AutomationExtension,
  automation,
  type AutomationOptions,
  type RunExecutor,
  type RunStart,
} from '../../src/automation-server/index.ts'
import {
  ARTIFACT_ID,
  ARTIFACT_NAME,
  ARTIFACT_TEXT,
  AUTOMATION,
  AUTOMATION_ID,
  CHANGED_ROOT,
  CHANGED_ROOT_ID,
  EXAMPLE_TIME,
  FUNCTION,
  GIVEN_INPUTS,
  INPUTS,
  MODEL,
  MODEL_ID,
  PIN,
  PIN_ID,
  REPORTS,
  RUN_ID,
  RUN_VERSION,
  RUN_VERSION_ID,
  VERSION,
  VERSION_ID,
} from '../../src/automation-server/schemas/openapi/examples.ts'
import {
  type Access,
  claimAuthorize,
  type CommonServiceOptions,
  createObjectService,
  type ObjectService,
  type ServiceExtension,
  type StorageBackend,
} from '../../src/index.ts'
import { DOOR, PROJECT_ID, ROOT, ROOT_ID, WALL } from '../../src/openapi/objects/examples.ts'
import { inProcess, SECRET_KEY, uploadObjects } from '../automation-server/support.ts'
import { behindPort } from '../http/served.ts'
import { type Answered, ask, type Sent } from '../mounts/ask.ts'

/** What the storage of a server does wrong at the moment. */
export interface Faults {
  isFull: boolean
  /** How often a run is still found when it is asked for; after that it is not there. */
  runReadsLeft: number
}

export interface AutomatedOptions extends AutomationOptions {
  /** Whether a second run is under way, which is the one that the own paths of a run are about. */
  readonly underWay?: boolean
}

/** A server that holds what the examples of automation are about. */
export interface Automated {
  readonly service: ObjectService
  readonly extension: AutomationExtension
  readonly backend: StorageBackend
  readonly faults: Faults
  /** The run that has ended. */
  readonly endedRunId: string
  /** A request of the document with the ids of this server, and with the run's token where it is a run that asks. */
  readonly real: (sent: Sent, template: string) => Sent
  readonly ask: (sent: Sent, template: string) => Promise<Answered>
  /** A text of this server with the ids of the document. */
  readonly shown: (text: string) => string
}

/** Paths of the run under way, and those that only it may ask. */
const OF_THE_RUN_UNDER_WAY = /\/runs\/\{runId\}\/(?:report|lease|versions|artifacts|cancel)$/
const OF_RUNS_THEMSELVES = /\/runs\/\{runId\}\/(?:report|lease|versions|artifacts)$/

/** Told by a header who asks: nobody, somebody without rights, or somebody whose rights cannot be found out. */
const ACCESS: Access<unknown> = {
  authenticate: ({ headers }) =>
    headers.get('x-test-who') === 'nobody'
      ? undefined
      : { subject: headers.get('x-test-who') ?? 'all', projects: { '*': 'write' } },
  authorize: (principal, projectId, right) => {
    if (principal.subject === 'broken') throw new Error('the host failed')
    return principal.subject !== 'stranger' && claimAuthorize(principal, projectId, right)
  },
}

export async function automatedServer(
  t: TestContext,
  { underWay = false, ...options }: AutomatedOptions = {},
): Promise<Automated> {
  const faults: Faults = { isFull: false, runReadsLeft: Infinity }
  let begun: (start: RunStart) => void = () => undefined
  const secondRun = new Promise<RunStart>((resolve) => {
    begun = resolve
  })
  const executor = inProcess(async (start, stopped) => {
    if (start.run.triggeredBy.kind === 'version') return workOfExample(start)
    await start.backend.report(REPORTS[0])
    begun(start)
    await stopped
  })
  const backend = memoryBackend()
  const { service, extension } = exampleService(failing(backend, faults), executor, options)
  const { port } = await behindPort(t, service)
  const { runId: endedRunId, ids } = await makeExamples(service, extension)
  const run = underWay ? await extension.project(PROJECT_ID).runs.start(String(ids.get(AUTOMATION_ID))) : undefined
  const token = underWay ? (await secondRun).runFile.speckleToken : ''
  const replaced = (text: string, runId: string): string =>
    [...ids, [RUN_ID, runId] as const].reduce((changed, [from, to]) => changed.replaceAll(from, to), text)
  const real: Automated['real'] = ({ path, headers = {}, body, ...sent }, template) => {
    const runId = run !== undefined && OF_THE_RUN_UNDER_WAY.test(template) ? run.id : endedRunId
    const asRun: Readonly<Record<string, string>> =
      OF_RUNS_THEMSELVES.test(template) && !('x-test-who' in headers) ? { authorization: `Bearer ${token}` } : {}
    const bytes =
      body === undefined ? {} : { body: Buffer.from(replaced(Buffer.from(body).toString('latin1'), runId), 'latin1') }
    return { ...sent, path: replaced(path, runId), headers: { ...headers, ...asRun }, ...bytes }
  }
  return {
    service,
    extension,
    backend,
    faults,
    endedRunId,
    real,
    ask: (sent, template) => ask(port, real(sent, template)),
    shown: (text) =>
      [...ids, [RUN_ID, endedRunId] as const].reduce((changed, [to, from]) => changed.replaceAll(from, to), text),
  }
}

/** A service that knows the function of the examples. */
export function exampleService(
  backend: StorageBackend,
  executor: RunExecutor,
  options: AutomationOptions = {},
  serviceOptions: Partial<CommonServiceOptions<unknown>> = {},
  others: readonly ServiceExtension[] = [],
): Pick<Automated, 'service' | 'extension'> {
  const { id, name, description, release } = FUNCTION
  const extension = automation({
    secretKeys: [SECRET_KEY],
    functions: [{ id, name, description, release, inputs: { ...INPUTS }, executor }],
    ...options,
  })
  const service = createObjectService({
    backend,
    access: ACCESS,
    clock: { now: () => Date.parse(EXAMPLE_TIME) },
    ...serviceOptions,
    extensions: [extension, ...others],
  })
  return { service, extension }
}

/** What the run of the examples does. */
export async function workOfExample({ run, projectId, backend }: RunStart): Promise<void> {
  const [first, ...others] = REPORTS
  await backend.report(first)
  await backend.createVersion({
    projectId,
    modelId: run.modelId,
    rootObjectId: CHANGED_ROOT_ID,
    message: RUN_VERSION.message,
    idempotencyKey: 'version',
  })
  await backend.storeArtifact({
    name: ARTIFACT_NAME,
    content: oneChunk(),
    sizeBytes: ARTIFACT_TEXT.length,
    idempotencyKey: 'artifact',
  })
  for (const report of others) await backend.report(report)
}

async function* oneChunk(): AsyncGenerator<Uint8Array> {
  yield Buffer.from(ARTIFACT_TEXT)
}

/** The ids of the document, each with the one that stands for it in this server, but for the run's. */
export async function makeExamples(
  service: ObjectService,
  extension: AutomationExtension,
): Promise<{ readonly runId: string; readonly ids: ReadonlyMap<string, string> }> {
  await uploadObjects(service, PROJECT_ID, [ROOT, WALL, DOOR, CHANGED_ROOT])
  const { models, versions, automations, runs } = extension.project(PROJECT_ID)
  const model = await models.create({ name: MODEL.name })
  const { name, functionId, trigger } = AUTOMATION
  const made = await automations.create({ name, functionId, modelId: model.id, inputs: GIVEN_INPUTS, trigger })
  const version = await versions.create(model.id, {
    rootObjectId: ROOT_ID,
    message: VERSION.message,
    source: VERSION.source,
  })
  await extension.idle()
  const [run] = (await runs.list({ automationId: made.id })).items
  const ids = [
    [MODEL_ID, model.id],
    [VERSION_ID, version.id],
    [AUTOMATION_ID, made.id],
    [RUN_VERSION_ID, run.createdVersions[0].versionId],
    [ARTIFACT_ID, run.artifacts[0].id],
    [PIN_ID, await pinned(service)],
  ] as const
  return { runId: run.id, ids: new Map(ids) }
}

/** The same storage, which fails when it is told to. */
function failing({ records, blobs, close }: StorageBackend, faults: Faults): StorageBackend {
  const checkFull = (): void => {
    if (faults.isFull) throw Object.assign(new Error('no space left'), { code: 'ENOSPC' })
  }
  return {
    blobs,
    close,
    records: {
      limits: records.limits,
      getMany: async (keys, options) => {
        if (keys.some((key) => Buffer.from(key).includes('\0run\0')) && faults.runReadsLeft-- <= 0)
          return keys.map(() => undefined)
        return records.getMany(keys, options)
      },
      range: (bounds, options) => records.range(bounds, options),
      insertMany: async (entries, options) => {
        checkFull()
        return records.insertMany(entries, options)
      },
      commit: async (change, options) => {
        checkFull()
        return records.commit(change, options)
      },
      close: () => records.close(),
    },
  }
}

/** Pins the root of the examples. */
async function pinned(service: ObjectService): Promise<string> {
  const { rootObjectId, name, reason } = PIN
  const answer = await service.fetch(
    new Request(`http://in.process/api/v1/projects/${PROJECT_ID}/pins`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ rootObjectId, name, reason }),
    }),
  )
  return ((await answer.json()) as { readonly id: string }).id
}
