import { ClientError } from '../../../client/common/errors.ts'
import { Connection } from '../../../client/http/connection.ts'
import { checkPathId, parseJson } from '../../../client/http/remote.ts'
import type { JsonObject } from '../../author/run-data.ts'

/** The run of a person on their own machine, and its token. */
export interface ExternalRunRequest {
  readonly url: string
  readonly token: string
  readonly projectId: string
  readonly automationId: string
  /** The latest by default. */
  readonly versionId?: string | undefined
}

/** A run that the server has opened for a function that runs elsewhere. */
export interface ExternalRun {
  readonly runId: string
  readonly modelId: string
  readonly versionId: string
  /** The token of the run. */
  readonly token: string
}

const ANSWER_BYTES_MAX = 1_048_576

/** The inputs of an automation, with `******` in place of secrets. Throws `ClientError`. */
export async function automationInputs(request: ExternalRunRequest): Promise<JsonObject> {
  const { inputs } = await asked(request, 'GET', [])
  if (typeof inputs === 'object' && inputs !== null) return inputs as JsonObject
  throw new ClientError('invalid_answer', 'the answer holds no inputs of an automation')
}

/** Opens a run that a person runs on a machine of their own. Throws `ClientError`. */
export async function openExternalRun(request: ExternalRunRequest): Promise<ExternalRun> {
  const { versionId } = request
  const body = { external: true, ...(versionId === undefined ? {} : { versionId }) }
  const answer = await asked(request, 'POST', ['runs'], body)
  return {
    runId: text(answer, 'id'),
    modelId: text(answer, 'modelId'),
    versionId: text(answer, 'versionId'),
    token: text(answer, 'token'),
  }
}

async function asked(
  { url, token, projectId, automationId }: ExternalRunRequest,
  method: 'GET' | 'POST',
  path: readonly string[],
  json?: JsonObject,
): Promise<Readonly<Record<string, unknown>>> {
  for (const id of [projectId, automationId]) checkPathId(id)
  const body = json === undefined ? undefined : JSON.stringify(json)
  const answer = await new Connection({ url, token }).request({
    method,
    path: ['api', 'v1', 'projects', projectId, 'automations', automationId, ...path],
    headers: { Accept: 'application/json', ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
    ...(body === undefined ? {} : { body, bodyBytes: body.length }),
  })
  return parseJson(await answer.text(ANSWER_BYTES_MAX), answer.what)
}

function text(answer: Readonly<Record<string, unknown>>, name: string): string {
  const value = answer[name]
  if (typeof value !== 'string') throw new ClientError('invalid_answer', `the answer holds no ${name}`)
  return value
}
