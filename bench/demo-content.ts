import { join } from 'node:path'
import { automationRequests, type DemoAutomations, FUNCTION_NAMES, setUpAutomations } from './demo-automation.ts'
import { type DemoModel, type DemoRequest, demoRequests } from './demo-requests.ts'
import { building, type ModelObject } from './model/building.ts'
import { REPOSITORY } from './repository.ts'
import { build, buildFunctions } from './server.ts'
import type { ServerLine } from './server-process.ts'
import { type Target, uploadModel } from './upload.ts'

/* What `npm start` and `npm run cluster` show: a building with a version, three functions that run on it, and a line to paste for each endpoint. */

export const PROJECT = 'demo'
const MODEL_OBJECTS = 3_000

/** Where people look at the demo. */
export type DemoPages = Pick<ServerLine, 'pagesUrl' | 'signInUrl'>

export interface Demo {
  readonly target: Target
  readonly objects: readonly ModelObject[]
  readonly automations: DemoAutomations
  readonly requests: readonly DemoRequest[]
}

/** Builds the package and the functions. Returns the options with which `stowage serve` registers them. */
export function buildDemo(): readonly string[] {
  console.log('Building ...')
  build()
  const functions = buildFunctions(FUNCTION_NAMES).flatMap((file) => ['--function', file])
  // The packages that they would have in their own node_modules.
  return [...functions, '--function-files', join(REPOSITORY, 'dist')]
}

/** Fills the project of a server that has the functions. What is there already stays. */
export async function fillDemo(target: Target): Promise<Demo> {
  const objects = [...building({ objects: MODEL_OBJECTS })].flat()
  const model = await fill(target, objects)
  const automations = await setUpAutomations(target, model.rootId)
  const requests = [...demoRequests(model), ...automationRequests(target, automations)]
  return { target, objects, automations, requests }
}

/** Uploads the model, or finds that it is already there. */
async function fill(target: Target, model: readonly ModelObject[]): Promise<DemoModel> {
  const report = await uploadModel(target, [model], { skipHeld: true })
  const megabytes = (report.jsonBytes / 1_048_576).toFixed(1)
  console.log(
    report.sentObjects === 0
      ? `Project "${PROJECT}" holds its model of ${report.objects} objects already.`
      : `Uploaded a model of ${report.sentObjects} objects, ${megabytes} MB of JSON, to project "${PROJECT}".`,
  )
  const child = model.findLast(({ json }) => json.includes('"Objects.Data.DataObject"')) ?? model[0]
  return { projectId: PROJECT, rootId: report.rootId, childId: child.id, objects: report.objects }
}

/** The lines to paste, and what they need. */
export function printRequests({ target, requests }: Demo): void {
  console.log(`export STOWAGE=${target.url}\nexport TOKEN=${target.token}`)
  for (const { endpoint, explanation, command } of requests) console.log(`\n# ${endpoint}: ${explanation}\n${command}`)
}

/** The link that signs a browser in, as the last line. */
export function printSignIn({ pagesUrl, signInUrl }: DemoPages): void {
  console.log(
    `\nPress Ctrl-C to stop. The link below works once, within five minutes; later on, sign in with $TOKEN at`,
  )
  console.log(`${pagesUrl}\n\nOpen this link: ${signInUrl}`)
}
