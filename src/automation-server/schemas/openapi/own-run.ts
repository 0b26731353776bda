import { headerRef, headersOf, SHARED_HEADERS } from '../../../openapi/description/shared.ts'
import { HEADERS as OBJECT_HEADERS, required } from '../../../openapi/objects/parts.ts'
import type { Headers, Parameter, Paths, Tag } from '../../../openapi/description/types.ts'
import {
  ARTIFACT,
  ARTIFACT_NAME,
  ARTIFACT_TEXT,
  CHANGED_ROOT_ID,
  MODEL_ID,
  REPORTS,
  RUN_VERSION,
  RUN_VERSION_ID,
} from './examples.ts'
import { FILE_BODY, FILE_NAME, jsonAnswer, jsonBody, operationOf, pathOf, PROJECT, WRITE_FAULTS } from './parts.ts'

/** The requests of a run itself, with its own token, and the files that it leaves. */

const TAG = 'Runs from within'
const ARTIFACTS_TAG = 'Artifacts'
const NO_RUN = { 404: `there is no run "${'0'.repeat(32)}" in this project` }

const reportRun = operationOf({
  operationId: 'reportRun',
  tag: TAG,
  right: 'run',
  summary: 'Report',
  description:
    'Taken whole or not at all. A sequence that was taken, and the final report again, change nothing and are answered as delivered.',
  body: jsonBody('RunReport', 'The report, 8 MB at most.', {
    running: { value: REPORTS[0] },
    annotations: { value: REPORTS[1] },
    final: { value: REPORTS[2] },
  }),
  answers: {
    200: jsonAnswer('ReportAccepted', 'It is kept.', {
      running: { value: {} },
      annotations: { value: {} },
      final: { value: {} },
    }),
  },
  faults: ['not_found', 'conflict', 'annotations_too_large', ...WRITE_FAULTS],
  messages: { ...NO_RUN, 409: 'the run accepts no more reports: it has ended (canceled)' },
})

const askLease = operationOf({
  operationId: 'askLease',
  tag: TAG,
  right: 'run',
  summary: 'Read the status of the run',
  description:
    'For the run itself, so that it learns of its end; it is answered even after the end. It renews the lease of an external run. For other runs, the runner on the server renews the lease.',
  answers: {
    200: jsonAnswer('Lease', 'The status of the run.', { one: { value: { status: 'running', canceled: false } } }),
  },
  faults: ['not_found'],
  messages: NO_RUN,
})

const createRunVersion = operationOf({
  operationId: 'createRunVersion',
  tag: TAG,
  right: 'run',
  summary: 'Create a version, as a run',
  description:
    'The same version is created once however often the run asks; without `Idempotency-Key` the same root and message in the same model are the same version.',
  parameters: ['IdempotencyKey'],
  body: jsonBody('NewRunVersion', 'The version.', {
    version: { value: { modelId: MODEL_ID, rootObjectId: CHANGED_ROOT_ID, message: RUN_VERSION.message } },
  }),
  answers: { 201: jsonAnswer('CreatedId', 'Its id.', { version: { value: { id: RUN_VERSION_ID } } }) },
  faults: ['not_found', 'objects_missing', 'conflict', ...WRITE_FAULTS],
  messages: { ...NO_RUN, 409: '2 objects below "root" are not held: "a", "b"; upload them, then create the version' },
})

const NAME: Parameter = {
  name: 'name',
  in: 'query',
  required: true,
  description: 'The display name: one line of 1 to 255 bytes of UTF-8.',
  schema: FILE_NAME,
  examples: { one: { value: ARTIFACT_NAME } },
}

const storeArtifact = operationOf({
  operationId: 'storeArtifact',
  tag: TAG,
  right: 'run',
  summary: 'Store a file',
  description: 'The body is the file, regardless of its type. At most 256 MB; a server can set another limit.',
  parameters: ['IdempotencyKey'],
  ownParameters: [NAME],
  body: FILE_BODY,
  answers: { 201: jsonAnswer('Artifact', 'The file as it is kept.', { file: { value: ARTIFACT } }) },
  faults: [
    'not_found',
    'request_aborted',
    'body_consumed',
    'conflict',
    'artifact_too_large',
    'unsupported_media_type',
    ...WRITE_FAULTS,
  ],
  messages: {
    ...NO_RUN,
    400: 'the parameter "name" is missing: the display name of the artifact',
    409: 'the run has stored 50 artifacts; that is the most',
    413: 'the artifact is larger than the limit of 268435456 bytes',
    415: 'the body\'s Content-Encoding is "gzip"; a file is sent as it is to be kept, without one',
  },
})

const FILE_HEADERS: Headers = headersOf(['Cache-Control', 'Content-Security-Policy'], {
  ...required('ETag', SHARED_HEADERS.ETag),
  ...required('Accept-Ranges', OBJECT_HEADERS['Accept-Ranges']),
})
const NAMED_HEADERS: Headers = {
  ...FILE_HEADERS,
  'Content-Disposition': {
    description: 'The display name of the file (RFC 6266, RFC 8187).',
    required: true,
    schema: { type: 'string', pattern: '^attachment; filename="[^"]*"; filename\\*=UTF-8\'\'[^ ]+$' },
  },
}

const getArtifact = operationOf({
  operationId: 'getArtifact',
  tag: ARTIFACTS_TAG,
  right: 'read',
  summary: 'A file of a run',
  description: 'As a file to save: no browser shows or runs it. It never changes.',
  parameters: ['IfMatch', 'IfNoneMatch', 'Range', 'IfRange'],
  answers: {
    200: {
      description: 'The file.',
      headers: NAMED_HEADERS,
      content: {
        'application/octet-stream': {
          schema: { type: 'string', contentMediaType: 'application/octet-stream' },
          examples: { one: { value: ARTIFACT_TEXT } },
        },
      },
    },
    206: {
      description: 'The bytes of the range.',
      headers: { ...NAMED_HEADERS, 'Content-Range': headerRef('Content-Range') },
      content: { 'application/octet-stream': { schema: { type: 'string', description: 'A part of the file.' } } },
    },
    304: { description: 'The client has it.', headers: FILE_HEADERS },
  },
  faults: ['not_found', 'precondition_failed', 'range_not_satisfiable'],
  messages: { 404: `there is no artifact "${'0'.repeat(32)}" in this project` },
})

/** A range of a HEAD has no meaning (RFC 9110 section 14.2), so it gets neither 206 nor 416. */
function withoutRanges(path: Paths[string]): Paths[string] {
  const { head } = path
  if (head === undefined) return path
  const { 206: _part, 416: _range, ...responses } = head.responses
  const parameters = head.parameters?.filter((one) => !('$ref' in one && /\/(?:If)?Range$/.test(one.$ref))) ?? []
  return { ...path, head: { ...head, parameters, responses } }
}

export const OWN_RUN_TAGS: readonly Tag[] = [
  {
    name: TAG,
    description:
      'The reports and files of a run, sent with the token of the run. The token grants the right to write in the project of the run, and expires with the run.',
  },
  { name: ARTIFACTS_TAG, description: 'Files that runs left.' },
]

export const OWN_RUN_PATHS: Paths = {
  [`${PROJECT}/runs/{runId}/report`]: pathOf(['RunId'], { post: reportRun }),
  [`${PROJECT}/runs/{runId}/lease`]: pathOf(['RunId'], { post: askLease }),
  [`${PROJECT}/runs/{runId}/versions`]: pathOf(['RunId'], { post: createRunVersion }),
  [`${PROJECT}/runs/{runId}/artifacts`]: pathOf(['RunId'], { post: storeArtifact }),
  [`${PROJECT}/artifacts/{artifactId}`]: withoutRanges(pathOf(['ArtifactId'], { get: getArtifact })),
}
