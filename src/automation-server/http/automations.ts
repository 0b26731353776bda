import { INPUTS_LIMITS } from '../../automation/inputs/description.ts'
import type { Resource } from '../../http/router.ts'
import { checkNoRun } from '../run-access.ts'
import { boolean, jsonObject, object, oneOf, optional, text } from '../shape.ts'
import type { HttpDeps } from './deps.ts'
import { checkParams, jsonAnswer, readJson, readQuery } from './json.ts'

const AUTOMATIONS = '/api/v1/projects/:projectId/automations'
const inputs = jsonObject(INPUTS_LIMITS.schemaBytesMax)
const trigger = oneOf('version', 'manual')
const readAutomation = object({
  name: text,
  functionId: text,
  modelId: text,
  inputs,
  trigger,
  enabled: optional(boolean),
})
const readChange = object({
  name: optional(text),
  inputs: optional(inputs),
  trigger: optional(trigger),
  enabled: optional(boolean),
})
const readStart = object({ versionId: optional(text) })

/** Automations, and starting one by hand. */
export function automationResourcesOf<H>({ domain, context: { guard }, limits }: HttpDeps<H>): readonly Resource<H>[] {
  const { automations, runs } = domain
  return [
    {
      path: AUTOMATIONS,
      check: checkParams,
      operations: {
        GET: async (exchange) => {
          await guard(exchange, 'read')
          return jsonAnswer(200, await automations.list(exchange.params.projectId, readQuery(exchange)))
        },
        POST: async (exchange) => {
          checkNoRun(await guard(exchange, 'write'))
          return jsonAnswer(
            201,
            await automations.create(
              exchange.params.projectId,
              await readJson(exchange, limits.bodyBytesMax, readAutomation),
            ),
          )
        },
      },
    },
    {
      path: `${AUTOMATIONS}/:automationId`,
      check: checkParams,
      operations: {
        GET: async (exchange) => {
          await guard(exchange, 'read')
          return jsonAnswer(200, await automations.get(exchange.params.projectId, exchange.params.automationId))
        },
        PATCH: async (exchange) => {
          checkNoRun(await guard(exchange, 'write'))
          const { projectId, automationId } = exchange.params
          return jsonAnswer(
            200,
            await automations.change(
              projectId,
              automationId,
              await readJson(exchange, limits.bodyBytesMax, readChange),
            ),
          )
        },
        DELETE: async (exchange) => {
          checkNoRun(await guard(exchange, 'write'))
          await automations.remove(exchange.params.projectId, exchange.params.automationId)
          return { status: 204, headers: { 'Cache-Control': 'private, no-store' } }
        },
      },
    },
    {
      path: `${AUTOMATIONS}/:automationId/runs`,
      check: checkParams,
      operations: {
        POST: async (exchange) => {
          checkNoRun(await guard(exchange, 'write'))
          const { projectId, automationId } = exchange.params
          const { versionId } = await readJson(exchange, limits.bodyBytesMax, readStart)
          return jsonAnswer(201, await runs.start(projectId, automationId, versionId))
        },
      },
    },
  ]
}
