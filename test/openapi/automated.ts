import type { TestContext } from 'node:test'
import { memoryBackend } from '../../adapters/memory.ts'
import { type AutomationExtension, automation, type AutomationOptions, type RunStart } from '../../src/automation-server/index.ts'
import {
  ARTIFACT_ID, ARTIFACT_NAME, ARTIFACT_TEXT, AUTOMATION, AUTOMATION_ID, CHANGED_ROOT, CHANGED_ROOT_ID, EXAMPLE_TIME, FUNCTION, GIVEN_INPUTS, INPUTS, MODEL, MODEL_ID, REPORTS, RUN_ID, RUN_VERSION,
  RUN_VERSION_ID, VERSION, VERSION_ID,
} from '../../src/automation-server/openapi/examples.ts'
import { type Access, claimAuthorize, createObjectService, type ObjectService, type StorageBackend } from '../../src/index.ts'
import { DOOR, PROJECT_ID, ROOT, ROOT_ID, WALL } from '../../src/openapi/objects/examples.ts'
import { inProcess, SECRET_KEY, uploadObjects } from '../automation-server/support.ts'
import { behindPort } from '../http/served.ts'
import { type Answered, ask, type Sent } from '../mounts/ask.ts'

/** What the storage of a server does wrong at the moment. */
export interface Faults {
  isFull: boolean
  /** Records that are still found; what is asked for after that is not there. */
  readsLeft: number
}

export interface AutomatedOptions extends AutomationOptions {
  /** Whether a second run is under way, which is the one that the own paths of a run are about. */
  readonly underWay?: boolean
  readonly backend?: StorageBackend
}

/** A server that holds what the examples of automation are about. */
export interface Automated {
  readonly service: ObjectService
  readonly extension: AutomationExtension
  readonly backend: StorageBackend
  readonly faults: Faults
  /** An automation of a model without versions. */
  readonly versionlessId: string
  /** The run that has ended. */
  readonly endedRunId: string
  /** The request as the document has it, with the ids of this server, and with the run's token where it is a run that asks. */
  readonly ask: (sent: Sent, template: string) => Promise<Answered>
  /** A text of this server with the ids of the document. */
  readonly shown: (text: string) => string
}

const OWN_PATHS = /\/runs\/\{runId\}\/(?:report|lease|versions|artifacts|cancel)$/
const OWN_OF_RUN = /\/runs\/\{runId\}\/(?:report|lease|versions|artifacts)$/

/** Told by a header who asks: nobody, somebody without rights, or somebody whose rights cannot be found out. */
const ACCESS: Access<unknown> = {
  authenticate: ({ headers }) => (headers.get('x-test-who') === 'nobody' ? undefined : { subject: headers.get('x-test-who') ?? 'all', projects: { '*': 'write' } }),
  authorize: (principal, projectId, right) => {
    if (principal.subject === 'broken') throw new Error('the host failed')
    return principal.subject !== 'stranger' && claimAuthorize(principal, projectId, right)
  },
}

export async function automatedServer(t: TestContext, { underWay = false, backend = memoryBackend(), ...options }: AutomatedOptions = {}): Promise<Automated> {
  const faults: Faults = { isFull: false, readsLeft: Infinity }
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
  const { id, name, description, release } = FUNCTION
  const extension = automation({ secretKeys: [SECRET_KEY], functions: [{ id, name, description, release, inputs: { ...INPUTS }, executor }], ...options })
  const service = createObjectService({ backend: failing(backend, faults), access: ACCESS, clock: { now: () => Date.parse(EXAMPLE_TIME) }, extensions: [extension] })
  const { port } = await behindPort(t, service)
  const made = await makeExamples(service, extension)
  const ids = new Map([[MODEL_ID, made.modelId], [VERSION_ID, made.versionId], [AUTOMATION_ID, made.automationId], [RUN_VERSION_ID, made.runVersionId], [ARTIFACT_ID, made.artifactId]])
  const run = underWay ? await extension.project(PROJECT_ID).runs.start(made.automationId) : undefined
  const token = underWay ? (await secondRun).runFile.speckleToken : ''
  const real = (text: string, runId: string): string => [...ids, [RUN_ID, runId] as const].reduce((changed, [from, to]) => changed.replaceAll(from, to), text)
  return {
    service, extension, backend, faults, versionlessId: made.versionlessId, endedRunId: made.runId,
    ask: ({ path, headers = {}, body, ...sent }, template) => {
      const runId = run !== undefined && OWN_PATHS.test(template) ? run.id : made.runId
      const asRun: Readonly<Record<string, string>> = OWN_OF_RUN.test(template) && !('x-test-who' in headers) ? { authorization: `Bearer ${token}` } : {}
      return ask(port, { ...sent, path: real(path, runId), headers: { ...headers, ...asRun }, ...(body === undefined ? {} : { body: real(Buffer.from(body).toString('latin1'), runId) }) })
    },
    shown: (text) => [...ids, [RUN_ID, made.runId] as const].reduce((changed, [to, from]) => changed.replaceAll(from, to), text),
  }
}

/** What the run of the examples does. */
async function workOfExample({ run, projectId, backend }: RunStart): Promise<void> {
  const [first, ...others] = REPORTS
  await backend.report(first)
  await backend.createVersion({ projectId, modelId: run.modelId, rootObjectId: CHANGED_ROOT_ID, message: RUN_VERSION.message, idempotencyKey: 'version' })
  await backend.storeArtifact({ name: ARTIFACT_NAME, content: [Buffer.from(ARTIFACT_TEXT)], idempotencyKey: 'artifact' })
  for (const report of others) await backend.report(report)
}

async function makeExamples(service: ObjectService, extension: AutomationExtension): Promise<Readonly<Record<'modelId' | 'versionId' | 'automationId' | 'runId' | 'runVersionId' | 'artifactId' | 'versionlessId', string>>> {
  await uploadObjects(service, PROJECT_ID, [ROOT, WALL, DOOR, CHANGED_ROOT])
  const { models, versions, automations, runs } = extension.project(PROJECT_ID)
  const { id: modelId } = await models.create({ name: MODEL.name })
  const { name, functionId, trigger } = AUTOMATION
  const { id: automationId } = await automations.create({ name, functionId, modelId, inputs: GIVEN_INPUTS, trigger })
  const { id: versionId } = await versions.create(modelId, { rootObjectId: ROOT_ID, message: VERSION.message, source: VERSION.source })
  await extension.idle()
  const [{ id: runId, createdVersions, artifacts }] = (await runs.list()).items
  return { modelId, automationId, versionId, runId, runVersionId: createdVersions[0].versionId, artifactId: artifacts[0].id, versionlessId: '' }
}

function failing(backend: StorageBackend, faults: Faults): StorageBackend {
  const { records, blobs } = backend
  return {
    blobs,
    close: async () => undefined,
    records: {
      limits: records.limits,
    },
  }
}
