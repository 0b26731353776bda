import type { Automation, Model, Page, Version } from '../src/automation-server/index.ts'
import type { DemoRequest } from './demo-requests.ts'
import type { Target } from './upload.ts'

/** The automations of the demo: the demo building as a model with a version, and an automation for each function. */
export interface DemoAutomations {
  readonly modelId: string
  readonly firstVersionId: string
  /** Ids of automations, by the functions that they run. */
  readonly automationIds: ReadonlyMap<string, string>
  /** The number of new items. */
  readonly created: number
}

const MODEL_NAME = 'Demo building'

interface DemoAutomation {
  readonly functionId: string
  readonly name: string
  readonly trigger: 'version' | 'manual'
}

/** Two run on each new version. The third one makes a version, and is started by hand. */
const AUTOMATIONS: readonly DemoAutomation[] = [
  { functionId: 'rule-checker', name: 'Fire ratings of walls', trigger: 'version' },
  { functionId: 'quantity-take-off', name: 'Quantities', trigger: 'version' },
  { functionId: 'level-renamer', name: 'Names of levels', trigger: 'manual' },
]

export const FUNCTION_NAMES: readonly string[] = AUTOMATIONS.map(({ functionId }) => functionId)

/** JSON of the automation API, below the project. Throws for a response that is not a success. */
export async function askAutomation<T>(
  target: Target,
  path: string,
  method: 'GET' | 'POST' | 'PATCH' = 'GET',
  body?: object,
): Promise<T> {
  const response = await fetch(`${target.url}/api/v1/projects/${target.projectId}/${path}`, {
    method,
    headers: { Authorization: `Bearer ${target.token}`, 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text.slice(0, 500)}`)
  return JSON.parse(text) as T
}

/**
 * Creates missing parts. The version comes last, so that the first start shows runs of the automations that wait for
 * one.
 */
export async function setUpAutomations(target: Target, rootObjectId: string): Promise<DemoAutomations> {
  let created = 0
  const foundOr = async <T>(
    items: readonly T[],
    isIt: (item: T) => boolean,
    path: string,
    body: object,
  ): Promise<T> => {
    const found = items.find(isIt)
    if (found === undefined) created += 1
    return found ?? askAutomation<T>(target, path, 'POST', body)
  }
  const all = async <T>(path: string): Promise<readonly T[]> =>
    (await askAutomation<Page<T>>(target, `${path}?limit=1000`)).items
  const { id: modelId } = await foundOr(await all<Model>('models'), ({ name }) => name === MODEL_NAME, 'models', {
    name: MODEL_NAME,
  })
  const automationIds = new Map<string, string>()
  const known = await all<Automation>('automations')
  for (const automation of AUTOMATIONS) {
    const isIt = (one: Automation): boolean => one.modelId === modelId && one.functionId === automation.functionId
    automationIds.set(
      automation.functionId,
      (await foundOr(known, isIt, 'automations', { ...automation, modelId, inputs: {} })).id,
    )
  }
  const versions = `models/${modelId}/versions`
  const isFirst = (version: Version): boolean => version.rootObjectId === rootObjectId && version.runId === null
  const first = await foundOr(await all<Version>(versions), isFirst, versions, {
    rootObjectId,
    message: 'As it was uploaded',
    source: 'npm start',
  })
  return { modelId, firstVersionId: first.id, automationIds, created }
}

/** Lines to paste, as those for the objects. */
export function automationRequests({ projectId }: Target, { automationIds }: DemoAutomations): readonly DemoRequest[] {
  const api = `$STOWAGE/api/v1/projects/${projectId}`
  const curl = 'curl -s -H "Authorization: Bearer $TOKEN"'
  return [
    {
      endpoint: 'GET /api/v1/projects/{projectId}/functions',
      explanation: 'what can be run, each with the schema of its inputs',
      command: `${curl} ${api}/functions | head -c 300; echo`,
      prints: /^\{"items":\[\{"id":"level-renamer",/,
    },
    {
      endpoint: 'GET /api/v1/projects/{projectId}/runs',
      explanation: 'what ran, the latest first',
      command: `${curl} "${api}/runs?limit=1"; echo`,
      prints: /^\{"items":\[\{"id":"[0-9a-f]{32}",/,
    },
    {
      endpoint: 'POST /api/v1/projects/{projectId}/automations/{automationId}/runs',
      explanation: 'start the rule checker, and watch until it has ended',
      command: `RUN=$(${curl} -X POST ${api}/automations/${automationIds.get('rule-checker')}/runs | cut -d'"' -f4); ${curl} -N ${api}/runs/$RUN/events`,
      prints: /event: status\nid: \S+\ndata: \{"status":"failed"/,
    },
  ]
}
