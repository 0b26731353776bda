import type { InputsSchema } from '../../../automation/author/inputs/schema.ts'
import type { JsonObject, LogLine, Annotation, RunReport } from '../../../automation/author/run-data.ts'
import { type ExampleObject, ROOT_ID, WALL_ID } from '../../../openapi/objects/examples.ts'
import type { Automation, FunctionInfo, Model, Page, Pin, RunArtifact, RunDetails, Version } from '../types.ts'

/** One model, one automation of it and one run of that, which all examples of the area are about. */

export const MODEL_ID = '019fc2aa6e807d1f3b5a9c04e2687f10'
export const VERSION_ID = '019fc2aa6e8122c4d6e8fa0b1c3d5e7f'
export const AUTOMATION_ID = '019fc2aa6e82408162a3c4e5f60718f2'
export const RUN_ID = '019fc2aa6e835b7d9fb1d3e5f7092b4d'
export const RUN_VERSION_ID = '019fc2aa6e8466f8a1b2c3d4e5f60123'
export const ARTIFACT_ID = '019fc2aa6e8577890abcdef012345678'
export const FUNCTION_ID = 'wall-check'
export const PIN_ID = '019fc2aa6e8588890abcdef012345678'
export const CHANGED_ROOT_ID = 'e4da3b7fbbce2345d7772b0674a318d5'

export const EXAMPLE_TIME = '2026-11-21T09:00:00.000Z'
const EXAMPLE_TIME_MS = Date.parse(EXAMPLE_TIME)
export const ARTIFACT_TEXT = 'id,height\n0cc175b9c0f1b6a831c399e269772661,2.5\n'
export const ARTIFACT_NAME = 'walls of the café.csv'

/** The version that the run creates. */
export const CHANGED_ROOT: ExampleObject = {
  id: CHANGED_ROOT_ID,
  service_type: 'Building',
  elements: [{ referencedId: WALL_ID }],
  __closure: { [WALL_ID]: 1 },
}

export const INPUTS: InputsSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  properties: {
    tolerance: {
      type: 'number',
      exclusiveMinimum: 0,
      exclusiveMaximum: 100,
      title: 'Tolerance',
      description: 'In millimetres.',
      default: 10,
    },
    analysis: {
      type: 'string',
      oneOf: [
        { const: 'structural', title: 'Structural' },
        { const: 'thermal', title: 'Thermal' },
      ],
      title: 'Analysis',
    },
    apiKey: { type: 'string', format: 'password', writeOnly: true, title: 'API key' },
  },
  required: ['analysis', 'apiKey'],
  additionalProperties: false,
}

export const FUNCTION: FunctionInfo = {
  id: FUNCTION_ID,
  name: 'Wall check',
  description: 'Looks for walls without a fire rating.',
  release: '1.2.0',
  version: '253c0564cc6672400a9c84b06d5527fd',
  inputs: INPUTS,
}

/** Inputs as a person enters them, and as they are shown. */
export const GIVEN_INPUTS: JsonObject = { tolerance: 5, analysis: 'structural', apiKey: 'k-4711' }
const SHOWN_INPUTS = { ...GIVEN_INPUTS, apiKey: '******' }

export const MODEL: Model = {
  id: MODEL_ID,
  name: 'House',
  createdAt: EXAMPLE_TIME,
  versionCount: 2,
  latestVersionId: RUN_VERSION_ID,
  retention: null,
  deletedAt: null,
}
export const NEW_MODEL: Model = { ...MODEL, versionCount: 0, latestVersionId: null }
export const DELETED_MODEL: Model = { ...MODEL, deletedAt: EXAMPLE_TIME }
export const VERSION: Version = {
  id: VERSION_ID,
  modelId: MODEL_ID,
  rootObjectId: ROOT_ID,
  message: 'Ground floor',
  source: 'archicad',
  runId: null,
  createdAt: EXAMPLE_TIME,
  kept: false,
  deletedAt: null,
}
export const DELETED_VERSION: Version = { ...VERSION, deletedAt: EXAMPLE_TIME }
export const RUN_VERSION: Version = {
  id: RUN_VERSION_ID,
  modelId: MODEL_ID,
  rootObjectId: CHANGED_ROOT_ID,
  message: 'Walls renamed',
  source: null,
  runId: RUN_ID,
  createdAt: EXAMPLE_TIME,
  kept: false,
  deletedAt: null,
}

export const PIN: Pin = {
  id: PIN_ID,
  rootObjectId: ROOT_ID,
  name: 'Permit drawings',
  reason: 'Submitted to the authority.',
  createdAt: EXAMPLE_TIME,
  endsAt: null,
}

export const AUTOMATION: Automation = {
  id: AUTOMATION_ID,
  name: 'Check walls',
  functionId: FUNCTION_ID,
  modelId: MODEL_ID,
  inputs: SHOWN_INPUTS,
  trigger: 'version',
  enabled: true,
  projects: [],
  createdAt: EXAMPLE_TIME,
  updatedAt: EXAMPLE_TIME,
}

export const ARTIFACT: RunArtifact = { id: ARTIFACT_ID, name: ARTIFACT_NAME, sizeBytes: ARTIFACT_TEXT.length }

export const ANNOTATION: Annotation = {
  category: 'Fire rating',
  level: 'ERROR',
  objectAppIds: { [WALL_ID]: 'wall-1' },
  message: 'has no fire rating',
  metadata: { required: 'F90' },
}
export const LOG_LINE: LogLine = { atMs: EXAMPLE_TIME_MS, level: 'info', message: '1 of 1 walls looked at' }

/** The reports of the run, one after the other. */
export const REPORTS: readonly RunReport[] = [
  { sequence: 1, status: 'running', progress: { fraction: 0.5, message: 'walls' } },
  { sequence: 2, annotations: [ANNOTATION], logs: [LOG_LINE] },
  { sequence: 3, status: 'succeeded', message: '1 wall has no fire rating', result: { walls: 1 } },
]

export const RUN: RunDetails = {
  id: RUN_ID,
  automationId: AUTOMATION_ID,
  functionId: FUNCTION_ID,
  functionVersion: FUNCTION.version,
  modelId: MODEL_ID,
  versionId: VERSION_ID,
  status: 'succeeded',
  message: '1 wall has no fire rating',
  progress: { fraction: 0.5, message: 'walls' },
  createdVersions: [{ modelId: MODEL_ID, versionId: RUN_VERSION_ID }],
  artifacts: [ARTIFACT],
  annotations: { SUCCESS: 0, INFO: 0, WARNING: 0, ERROR: 1 },
  triggeredBy: { kind: 'version', runId: null },
  logsTruncated: false,
  expired: [],
  createdAt: EXAMPLE_TIME,
  startedAt: EXAMPLE_TIME,
  endedAt: EXAMPLE_TIME,
  result: { walls: 1 },
  cause: { id: VERSION_ID, runs: 1, notStarted: 0, runsMax: 50 },
}

/** The events of the run for a client that connects after its end. */
export const EVENTS: readonly string[] = [
  'retry: 2000\n\n',
  `event: log\nid: 0.1\ndata: ${JSON.stringify(LOG_LINE)}\n\n`,
  `event: progress\ndata: ${JSON.stringify(RUN.progress)}\n\n`,
  `event: annotations\ndata: ${JSON.stringify(RUN.annotations)}\n\n`,
  `event: outputs\ndata: ${JSON.stringify({ createdVersions: RUN.createdVersions, artifacts: RUN.artifacts })}\n\n`,
  `event: status\nid: 7.1\ndata: ${JSON.stringify({ status: RUN.status, message: RUN.message })}\n\n`,
]

export function pageOf<T>(...items: readonly T[]): Page<T> {
  return { items, cursor: null }
}
