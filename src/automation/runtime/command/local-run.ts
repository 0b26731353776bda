import { createClient } from '../../../client/client.ts'
import { StowageError } from '../../../errors.ts'
import type { RunFile } from '../../author/run-data.ts'
import { localRunBackend } from '../http/local-run-backend.ts'
import type { RunBackend } from '../run-backend.ts'
import { readInputsFile, readRunFile } from './run-file.ts'

/** What `run` is told on the command line instead of by a run file. */
export interface LocalRunArguments {
  readonly local?: true
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
}

const TOKEN_VARIABLE = 'STOWAGE_TOKEN'
const URL_VARIABLE = 'STOWAGE_URL'
const URL_DEFAULT = 'http://127.0.0.1:8642'
const FILES_DEFAULT = 'function-files'
const LOCAL = 'local'

/** Whether somebody runs the function for themselves, and not a server. */
export function isLocal(path: string | undefined, options: LocalRunArguments): boolean {
  return path === undefined || options.local === true
}

/**
 * What a run on one's own machine is about: of a run file, or of options, with the token of the environment. Throws `invalid_request` for what is missing, and `ClientError` where
 * the latest version has to be asked for.
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
  const client = createClient({ url, token })
  const projectId = options.project ?? data?.projectId ?? missing('--project ID')
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
