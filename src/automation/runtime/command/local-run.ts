import { createClient } from '../../../client/client.ts'
import { StowageError } from '../../../errors.ts'
import type { JsonObject, RunFile } from '../../author/run-data.ts'
import { automationInputs, openExternalRun } from '../http/external-run.ts'
import { httpRunBackend } from '../http/http-run-backend.ts'
import { localRunBackend } from '../http/local-run-backend.ts'
import { environmentSecrets } from '../run/environment-secrets.ts'
import type { RunBackend } from '../run-backend.ts'
import { readInputsFile, readRunFile } from './run-file.ts'

/** The values that `run` takes from the command line instead of from a run file. */
export interface LocalRunArguments {
  readonly local?: true
  /** To the server, as a run of the automation. */
  readonly report?: true
  readonly automation?: string
  readonly url?: string
  readonly project?: string
  readonly model?: string
  readonly version?: string
  /** A file of inputs. */
  readonly inputs?: string
  /** A folder. */
  readonly files?: string
}

export interface LocalRun {
  readonly runFile: RunFile
  readonly backend: RunBackend
  /** Texts that are kept out of the run's reports, besides the token in the run file. */
  readonly secrets?: readonly string[]
}

const TOKEN_VARIABLE = 'STOWAGE_TOKEN'
const URL_VARIABLE = 'STOWAGE_URL'
const URL_DEFAULT = 'http://127.0.0.1:8642'
const FILES_DEFAULT = 'function-files'
const LOCAL = 'local'
/** The placeholder that a server shows for a secret. */
const HIDDEN = '******'

/** Whether a person runs the function, rather than a server. */
export function isLocal(path: string | undefined, options: LocalRunArguments): boolean {
  return path === undefined || options.local === true || options.report === true
}

/**
 * The data of a run on one's own machine: from a run file, or from options, with the token of the environment. Throws
 * `invalid_request` for missing values, and `ClientError` if the latest version cannot be fetched.
 */
export async function localRun(
  path: string | undefined,
  options: LocalRunArguments,
  print: (line: string) => void,
): Promise<LocalRun> {
  const given = path === undefined ? undefined : await readRunFile(path)
  const token = process.env[TOKEN_VARIABLE] ?? given?.speckleToken ?? ''
  if (token === '')
    throw new StowageError('invalid_request', `the token is missing; set the environment variable ${TOKEN_VARIABLE}`)
  const data = given?.automationRunData
  const trigger = data?.triggers[0]?.payload
  const url = options.url ?? data?.speckleServerUrl ?? process.env[URL_VARIABLE] ?? URL_DEFAULT
  const projectId = options.project ?? data?.projectId ?? missing('--project ID')
  if (options.report === true) return reportedRun({ given, options, print, token, url, projectId })
  const client = createClient({ url, token })
  const modelId = options.model ?? trigger?.modelId ?? missing('--model ID')
  const versionId =
    options.version ?? trigger?.versionId ?? (await latestOf(client.project(projectId).models.get(modelId)))
  const inputs = options.inputs === undefined ? given?.functionInputs : await readInputsFile(options.inputs)
  const runFile: RunFile = {
    speckleToken: token,
    functionInputs: inputs ?? null,
    automationRunData: {
      projectId,
      speckleServerUrl: url,
      automationId: data?.automationId ?? LOCAL,
      automationRunId: data?.automationRunId ?? LOCAL,
      functionRunId: data?.functionRunId ?? LOCAL,
      triggers: [{ triggerType: 'versionCreation', payload: { modelId, versionId } }],
    },
  }
  const filesFolder = options.files ?? FILES_DEFAULT
  return { runFile, backend: localRunBackend({ client, runFile, filesFolder, print }) }
}

interface Reported {
  readonly given: RunFile | undefined
  readonly options: LocalRunArguments
  readonly print: (line: string) => void
  readonly token: string
  readonly url: string
  readonly projectId: string
}

/** The server opens a run with a token of its own, to which the function then reports like any other. */
async function reportedRun({ given, options, print, token, url, projectId }: Reported): Promise<LocalRun> {
  const data = given?.automationRunData
  const automationId = options.automation ?? data?.automationId ?? missing('--automation ID')
  const request = { url, token, projectId, automationId, versionId: options.version }
  const functionInputs =
    options.inputs === undefined
      ? (given?.functionInputs ?? shownInputs(await automationInputs(request)))
      : await readInputsFile(options.inputs)
  const run = await openExternalRun(request)
  const { modelId, versionId } = run
  print(`reports to ${url} as run ${run.runId} of project ${projectId}`)
  const runFile: RunFile = {
    speckleToken: run.token,
    functionInputs,
    automationRunData: {
      projectId,
      speckleServerUrl: url,
      automationId,
      automationRunId: run.runId,
      functionRunId: run.runId,
      triggers: [{ triggerType: 'versionCreation', payload: { modelId, versionId } }],
    },
  }
  // Everybody with the right to read the project reads the reports of the run, and the environment of a person holds
  // more than their own token.
  return { runFile, backend: httpRunBackend(runFile), secrets: [token, ...environmentSecrets(process.env)] }
}

function shownInputs(inputs: JsonObject): JsonObject {
  const hidden = Object.keys(inputs).filter((name) => inputs[name] === HIDDEN)
  if (hidden.length === 0) return inputs
  throw new StowageError(
    'invalid_request',
    `the automation has secret inputs (${hidden.join(', ')}), which the server does not show; give all inputs with --inputs FILE`,
  )
}

async function latestOf(model: Promise<{ readonly latestVersionId: string | null }>): Promise<string> {
  const { latestVersionId } = await model
  if (latestVersionId !== null) return latestVersionId
  throw new StowageError('invalid_request', 'the model has no version yet; make one first')
}

function missing(option: string): never {
  throw new StowageError(
    'invalid_request',
    `${option} is missing, and so is a run file: name the version that the function runs on`,
  )
}
