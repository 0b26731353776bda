import { open } from 'node:fs/promises'
import { StowageError } from '../../../errors.ts'
import type { JsonObject, RunFile } from '../../author/run-data.ts'

const RUN_FILE_BYTES_MAX = 16_777_216

/**
 * Reads the file with which a runner starts a function. Throws `invalid_request`, which names the fault without showing
 * any of the content, and the errors of the file system.
 */
export async function readRunFile(path: string): Promise<RunFile> {
  const file = object(await readJsonFile(path), 'the run file')
  const data = object(file.automationRunData, 'automationRunData')
  return {
    speckleToken: text(file.speckleToken, 'speckleToken'),
    functionInputs: optionalObject(file.functionInputs, 'functionInputs'),
    automationRunData: {
      projectId: text(data.projectId, 'automationRunData.projectId'),
      speckleServerUrl: text(data.speckleServerUrl, 'automationRunData.speckleServerUrl'),
      automationId: text(data.automationId, 'automationRunData.automationId'),
      automationRunId: text(data.automationRunId, 'automationRunData.automationRunId'),
      functionRunId: text(data.functionRunId, 'automationRunData.functionRunId'),
      triggers: array(data.triggers, 'automationRunData.triggers').map((trigger, at) => {
        const payload = object(object(trigger, `triggers[${at}]`).payload, `triggers[${at}].payload`)
        return {
          triggerType: 'versionCreation',
          payload: {
            modelId: text(payload.modelId, `triggers[${at}].payload.modelId`),
            versionId: text(payload.versionId, `triggers[${at}].payload.versionId`),
          },
        }
      }),
    },
  }
}

/** The inputs in a run file, or in a file that holds nothing else. */
export async function readInputsFile(path: string): Promise<JsonObject> {
  const file = object(await readJsonFile(path), 'the file')
  return Object.hasOwn(file, 'functionInputs') ? (optionalObject(file.functionInputs, 'functionInputs') ?? {}) : file
}

async function readJsonFile(path: string): Promise<unknown> {
  const file = await open(path)
  try {
    const { size } = await file.stat()
    if (size > RUN_FILE_BYTES_MAX)
      throw new StowageError('invalid_request', `the file has ${size} bytes; the limit is ${RUN_FILE_BYTES_MAX}`)
    return parsed(await file.readFile('utf8'))
  } finally {
    await file.close()
  }
}

/** The parser's message may quote the token. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    throw new StowageError('invalid_request', 'the file is not JSON')
  }
}

function object(value: unknown, what: string): JsonObject {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject
  throw new StowageError('invalid_request', `${what} must be an object`)
}

function optionalObject(value: unknown, what: string): JsonObject | null {
  return value === undefined || value === null ? null : object(value, what)
}

function array(value: unknown, what: string): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw new StowageError('invalid_request', `${what} must be an array`)
}

function text(value: unknown, what: string): string {
  if (typeof value === 'string' && value !== '') return value
  throw new StowageError('invalid_request', `${what} must be a text that is not empty`)
}
