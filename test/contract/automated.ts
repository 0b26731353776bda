import { randomBytes } from 'node:crypto'
import { test, type TestContext } from 'node:test'
import {
  automation,
  type AutomationExtension,
  type FunctionInfo,
  type FunctionRegistration,
  type RunDetails,
  type RunExecutor,
  type Version,
} from '../../src/automation-server/index.ts'
import {
  type AutomationFunction,
  defineFunction,
  type FunctionBody,
  type InferInputs,
  type InputsSource,
  type JsonObject,
  type Annotation,
  RunCanceled,
} from '../../src/automation/index.ts'
import { httpRunBackend, type LogLine, startRun } from '../../src/automation/runtime/index.ts'
import { type Client, createClient } from '../../src/client/index.ts'
import { createObjectService, type ObjectService } from '../../src/index.ts'
import { openServers } from '../support/several-servers.ts'
import { accessOf, tokenFor } from './sides.ts'

export const PROJECT = 'a-project'

/** A graph with a shared part, as automation functions get it. */
export const MODEL: Readonly<Record<string, unknown>> = {
  speckle_type: 'Building',
  name: 'house',
  units: 'm',
  '@elements': [
    { speckle_type: 'Wall', applicationId: 'wall-1', parameters: { height: 3 }, '@level': { name: 'ground' } },
    { speckle_type: 'Wall', applicationId: 'wall-2', parameters: { height: 2 }, '@level': { name: 'ground' } },
  ],
}

/** A run, as it looks from outside when it has ended. */
export interface Ran {
  readonly run: RunDetails
  readonly annotations: readonly Annotation[]
  readonly logs: readonly LogLine[]
  /** The newest first. */
  readonly versions: readonly Version[]
  /** Of the version that the run was started on. */
  readonly rootObjectId: string
  readonly versionId: string
  readonly modelId: string
  readonly function: FunctionInfo
  /** Of somebody who may write. */
  readonly client: Client
  readonly download: (artifactId: string) => Promise<Response>
}

type RunFunction = <S extends InputsSource>(
  body: FunctionBody<InferInputs<S>>,
  Inputs: S,
  inputs?: JsonObject,
) => Promise<Ran>

/**
 * A test on each way in which a function reaches the service: in process, and by requests with its token. Access is by
 * JWT.
 */
export function onBothBackends(name: string, check: (ran: RunFunction) => Promise<void>): void {
  void test(name, async (t) => {
    for (const [backend, registeredAs] of [
      ['embedded', inProcess],
      ['http', byRequests],
    ] as const) {
      await t.test(backend, (t) =>
        check((body, Inputs, inputs = {}) => ranOn(t, { body: defineFunction(body, Inputs), inputs, registeredAs })),
      )
    }
  })
}

type Register = (automationFunction: AutomationFunction, service: () => ObjectService) => FunctionRegistration

const inProcess: Register = (automationFunction) => ({ id: 'function', release: '1', function: automationFunction })

const byRequests: Register = (automationFunction, service) => {
  const executor: RunExecutor = {
    start: ({ runFile, secretTexts }) => {
      const backend = httpRunBackend(runFile, { fetch: (url, init) => service().fetch(new Request(url, init)) })
      const run = startRun(automationFunction, {
        backend,
        runData: runFile.automationRunData,
        inputs: runFile.functionInputs,
        secrets: secretTexts,
      })
      return { cancel: (reason) => run.stop(new RunCanceled(reason)), ended: run.outcome.then(() => undefined) }
    },
  }
  return {
    id: 'function',
    name: automationFunction.name,
    release: '1',
    inputs: automationFunction.inputs.toJSONSchema(),
    executor,
  }
}

async function ranOn(
  t: TestContext,
  {
    body,
    inputs,
    registeredAs,
  }: { readonly body: AutomationFunction; readonly inputs: JsonObject; readonly registeredAs: Register },
): Promise<Ran> {
  const secret = randomBytes(32)
  const secretKeys = [{ id: 'key', key: randomBytes(32) }]
  const { service, extension } = openServers<{
    readonly service: ObjectService
    readonly extension: AutomationExtension
  }>((backend) => {
    const extension: AutomationExtension = automation({ functions: [registeredAs(body, () => service)], secretKeys })
    const access = accessOf(secret)
    return { extension, service: createObjectService({ backend, access, extensions: [extension] }) }
  })
  t.after(() => service.close({ graceMs: 100 }))
  const token = await tokenFor(secret, { [PROJECT]: 'write' })
  const client = createClient({
    url: 'http://in.process',
    token,
    fetch: (url, init) => service.fetch(new Request(url, init)),
  })
  const { root: rootObjectId } = await client.project(PROJECT).send(MODEL)
  const { models, versions, automations, runs } = extension.project(PROJECT)
  const { id: modelId } = await models.create({ name: 'House' })
  const { id: versionId } = await versions.create(modelId, { rootObjectId, message: 'first' })
  const { id: automationId } = await automations.create({
    name: 'An automation',
    functionId: 'function',
    modelId,
    inputs,
    trigger: 'manual',
  })
  const { id } = await runs.start(automationId)
  await extension.idle()
  return {
    run: await runs.get(id),
    annotations: (await runs.annotations(id)).items,
    logs: (await runs.logs(id)).items,
    versions: (await versions.list(modelId)).items,
    rootObjectId,
    versionId,
    modelId,
    client,
    function: extension.functions()[0],
    download: (artifactId) =>
      service.fetch(
        new Request(`http://in.process/api/v1/projects/${PROJECT}/artifacts/${artifactId}`, {
          headers: { Authorization: `Bearer ${token}` },
        }),
      ),
  }
}
