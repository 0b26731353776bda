import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { archives, exportToFile, type ProjectAddress, type SecretRecipients } from '../../src/archive/index.ts'
import {
  automation,
  type AutomationExtension,
  type RunExecutor,
  type SecretKey,
  type Version,
} from '../../src/automation-server/index.ts'
import { createClient, type Project } from '../../src/client/index.ts'
import { createObjectService, type ObjectService, openAccess, type StorageBackend } from '../../src/index.ts'
import { definition, reporting, SECRET_KEY } from '../automation-server/support.ts'
import { buildModel, type Model } from '../support/model.ts'

export const PROJECT = 'house'
/** Of a version: several pages. */
const PAGE_BYTES = 80_000
export const OBJECTS = 400
/** For what is kept beside objects. */
export const FEW_OBJECTS = 40

/** A server in this process that knows archives. */
export interface Site {
  readonly backend: StorageBackend
  readonly service: ObjectService
  readonly extension: AutomationExtension
  readonly address: ProjectAddress
  readonly project: Project
}

export interface SiteSecrets {
  readonly secretKey?: SecretKey
  readonly secretRecipients?: SecretRecipients
}

const REPORTING = reporting(
  { status: 'running', logs: [{ atMs: 1, level: 'info', message: 'first\u2028line' }] },
  {
    annotations: [
      { category: 'Walls', level: 'ERROR', objectAppIds: { a: null }, message: 'too thin', metadata: { width: 1 } },
      { category: 'Doors', level: 'INFO', objectAppIds: { b: 'app-b' }, message: null, metadata: null },
    ],
  },
  { status: 'succeeded', message: 'checked', result: { walls: 12 } },
)

export function site(
  t: TestContext,
  backend: StorageBackend = memoryBackend(),
  executor: RunExecutor = REPORTING,
  { secretKey = SECRET_KEY, secretRecipients = [] }: SiteSecrets = {},
): Site {
  const extension = automation({ secretKeys: [secretKey], functions: [definition(executor)] })
  const extensions = [extension, archives({ secretKeys: [secretKey], secretRecipients, pageBytes: PAGE_BYTES })]
  const service = createObjectService({ backend, access: openAccess(), extensions })
  t.after(() => service.close({ graceMs: 100 }))
  const address = addressOf(service)
  return { backend, service, extension, address, project: createClient(address).project(PROJECT) }
}

/** The project of a service in this process. */
export function addressOf(service: ObjectService): ProjectAddress {
  return {
    url: 'http://in.process',
    token: undefined,
    projectId: PROJECT,
    fetch: (url, init) => service.fetch(new Request(url, init)),
  }
}

export const SECRETS = { apiKey: 'open sesame \u2028 ü' }

/** A server whose automation has a secret. */
export async function withSecret(
  t: TestContext,
  recipients: readonly string[],
): Promise<Site & { readonly id: string }> {
  const source = site(t, undefined, undefined, { secretRecipients: recipients })
  await source.project.upload([{ id: 'root' }])
  const house = source.extension.project(PROJECT)
  const { id: modelId } = await house.models.create({ name: 'House' })
  await house.versions.create(modelId, { rootObjectId: 'root', message: '' })
  const inputs = { tolerance: 1, ...SECRETS }
  const wanted = { name: 'Secret', functionId: 'checker', modelId, inputs, trigger: 'manual' } as const
  return { ...source, id: (await house.automations.create(wanted)).id }
}

/** What a furnished project holds. */
export interface Furnished {
  readonly models: readonly Model[]
  readonly versions: readonly Version[]
  readonly modelId: string
  readonly automationId: string
  readonly runId: string
}

export function building(revision: number, objects: number = OBJECTS): Model {
  return buildModel({ objects, revision, changed: revision === 0 ? 0 : 20 })
}

/** Two versions of a model, an object that nothing refers to, and an automation whose run has ended. */
export async function furnish({ project, extension }: Site, objectCount: number = OBJECTS): Promise<Furnished> {
  const house = extension.project(PROJECT)
  const { id: modelId } = await house.models.create({ name: 'House' })
  const models = [building(0, objectCount), building(1, objectCount)]
  const versions: Version[] = []
  for (const [at, { objects, rootId }] of models.entries()) {
    await project.upload(objects.map(({ id, json }) => ({ id, json })))
    versions.push(await house.versions.create(modelId, { rootObjectId: rootId, message: `state ${at}` }))
  }
  await project.upload([{ id: 'loose', note: 'nothing refers to it' }])
  const { id: automationId } = await house.automations.create({
    name: 'Check',
    functionId: 'checker',
    modelId,
    inputs: { tolerance: 2 },
    trigger: 'version',
  })
  const run = await house.runs.start(automationId)
  await extension.idle()
  return { models, versions, modelId, automationId, runId: run.id }
}

/** The lines of a graph, sorted: equal where the same objects are held with the same bytes. */
export async function linesOf(project: Project, rootId: string): Promise<readonly string[]> {
  const lines: string[] = []
  for await (const batch of project.graphTexts(rootId)) for (const { id, json } of batch) lines.push(`${id}\t${json}`)
  return lines.sort()
}

/** Exports until the file holds objects. Resolves to how many it holds. */
export async function breakOff(source: ProjectAddress, path: string): Promise<number> {
  const stop = new AbortController()
  let written = 0
  const onProgress = ({ objects }: { readonly objects: number }): void => {
    written = objects
    if (objects > 0) stop.abort(new Error('enough'))
  }
  await assert.rejects(exportToFile(source, path, { signal: stop.signal, onProgress }), /enough/)
  return written
}
