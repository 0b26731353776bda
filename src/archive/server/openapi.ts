import { createHash } from 'node:crypto'
import {
  ARTIFACT_NAME,
  ARTIFACT_TEXT,
  AUTOMATION,
  CHANGED_ROOT,
  MODEL,
  PIN,
  RUN_ID,
  VERSION,
} from '../../automation-server/schemas/openapi/examples.ts'
import {
  FILE_BODY,
  FILE_NAME,
  operationOf,
  PARAMETERS,
  pathOf,
  PROJECT,
  WRITE_FAULTS,
} from '../../automation-server/schemas/openapi/parts.ts'
import { RESOURCE_ID } from '../../automation-server/schemas/shapes/common.ts'
import type { ApiArea } from '../../openapi/description/compose.ts'
import { errorResponses, headersOf, headOf, optionsOf } from '../../openapi/description/shared.ts'
import type { Header, Operation, Parameter, Response, Schema } from '../../openapi/description/types.ts'
import { CURSOR_TEXT } from './cursor.ts'
import { RECORD_SHAPES } from './record-shapes.ts'
import { DOOR, lines, PROJECT_ID, ROOT, WALL } from '../../openapi/objects/examples.ts'
import { RECIPIENT_TEXT } from './recipient-key.ts'

/**
 * What archives add to the description of a service. It stands alone: it names no schema of automation, since a service
 * may have archives without automation.
 */

const TAG = 'Archives'
/** What the value holds depends on the kind. */
const RECORD: Schema = {
  type: 'object',
  required: ['kind', 'value'],
  properties: {
    kind: { type: 'string', enum: Object.keys(RECORD_SHAPES) },
    value: { type: 'object', description: 'As docs/archive-format.md describes it for the kind.' },
  },
}
const COUNT: Schema = { type: 'integer', minimum: 0 }

const PLACE: Header = {
  description: 'A place among the objects.',
  required: true,
  schema: { type: 'string', pattern: CURSOR_TEXT },
}

const STORE_ID: Header = {
  description: 'The id of the storage.',
  required: true,
  schema: { type: 'string', pattern: '^[0-9a-f]{32}$' },
}

function ownJson(schema: Schema, description: string, value: unknown): Response {
  return {
    description,
    headers: headersOf(['Cache-Control']),
    content: { 'application/json': { schema, examples: { one: { value } } } },
  }
}

function members(properties: Readonly<Record<string, Schema>>): Schema {
  return { type: 'object', required: Object.keys(properties), additionalProperties: false, properties }
}

function queryParameter(name: string, description: string, schema: Schema, value: string): Parameter {
  return { name, in: 'query', required: true, description, schema, examples: { one: { value } } }
}

const listProjects: Operation = {
  operationId: 'listProjects',
  summary: 'The projects in which the caller may read',
  description:
    'Their ids, one JSON string a line. `Stowage-Store` is the id of the storage, which stays when the server restarts.',
  tags: [TAG],
  parameters: [{ $ref: '#/components/parameters/RequestId' }],
  responses: {
    200: {
      description: 'The ids.',
      headers: headersOf(['Cache-Control'], { 'Stowage-Store': STORE_ID }),
      content: {
        'application/x-ndjson': {
          schema: { type: 'string' },
          examples: { one: { value: `${JSON.stringify(PROJECT_ID)}\n` } },
        },
      },
    },
    ...errorResponses([
      { codes: ['unauthenticated'], message: 'a token is needed in the header "Authorization: Bearer <token>"' },
      { codes: ['too_many_requests'], message: 'this account makes more requests than it may; try again in 2 s' },
      { codes: ['internal', 'corrupt_data'], message: 'the request failed inside the server' },
      {
        codes: ['closing', 'overloaded', 'access_unavailable', 'storage_unavailable', 'maintenance'],
        message: 'the service is closing; try again a little later',
      },
    ]),
  },
}

const exportObjects = operationOf({
  operationId: 'exportObjects',
  tag: TAG,
  right: 'read',
  summary: 'A page of everything that the project holds',
  description:
    'Objects in the order of their arrival, as lines of about 4 MB. Request the next page with `Stowage-Next` as `after` and the `Stowage-End` of the first page as `end`, until `Stowage-Next` equals it. Each object comes once, also if packs are merged meanwhile; if the run takes longer than a day, some may come twice. To read later what has come since, begin with that `Stowage-End` as `after`. Objects that a collection condemned are included, because they can be restored. While an upload is being stored, a page may be empty although it is not the last one. 409 means that the cursor is not of the history of this project: it was removed and created again, its server was restored or got older data back, or the cursor comes from elsewhere. Start again without a cursor.',
  parameters: ['ExportAfter', 'ExportEnd', 'AcceptEncoding'],
  answers: {
    200: {
      description: 'The page.',
      headers: headersOf(
        ['Cache-Control', 'Content-Encoding', 'Stowage-Objects', 'Stowage-Missing-Objects', 'Stowage-Closure'],
        { 'Stowage-Next': PLACE, 'Stowage-End': PLACE },
      ),
      content: {
        'text/plain': {
          schema: { type: 'string' },
          examples: { one: { value: lines([ROOT, WALL, DOOR, CHANGED_ROOT]) } },
        },
      },
    },
  },
  faults: ['not_found', 'not_acceptable', 'conflict'],
  messages: {
    404: `the project "${PROJECT_ID}" holds no objects`,
    409: 'the cursor is not of this project as it is now; start again without "after"',
  },
})

const exportAutomations = operationOf({
  operationId: 'exportAutomations',
  tag: TAG,
  right: 'write',
  summary: 'Automations with their sealed secrets',
  description:
    'As the list of automations, each with `sealed`: its secrets, which only a server with the same key opens. With `sealedFor`, an automation that has secrets has `secrets` instead: a JWE in compact form for that key. The operator of the server names the keys that are allowed (403). A token whose claim has `sealedSecrets` needs the right to read alone, but not with `sealedFor`. Tokens of runs are refused.',
  parameters: ['Limit', 'Cursor', 'ExportSealedFor'],
  answers: {
    200: ownJson(
      members({
        items: { type: 'array', items: { type: 'object' } },
        cursor: { oneOf: [{ type: 'string' }, { type: 'null' }] },
      }),
      'A part of the list.',
      { items: [{ ...AUTOMATION, sealed: { apiKey: 'Zmlyc3QuMDEyMw==' } }], cursor: null },
    ),
  },
  faults: [],
})

const importRecords = operationOf({
  operationId: 'importRecords',
  tag: TAG,
  right: 'write',
  summary: 'Take records under their own ids',
  description:
    'Records in the order in which they are taken, at most 1,000 of them and 16 MB, as a JSON array: pins, models, versions, automations, annotations, logs, ended runs and marks of mirrors. docs/archive-format.md describes each. Taking one again changes nothing. When one is refused, those before it stay. Tokens of runs are refused.',
  body: {
    description: 'The records.',
    required: true,
    content: {
      'application/json': {
        schema: { type: 'array', maxItems: 1_000, items: RECORD },
        examples: {
          several: {
            value: [
              { kind: 'pin', value: PIN },
              { kind: 'model', value: MODEL },
              { kind: 'version', value: VERSION },
            ],
          },
        },
      },
    },
  },
  answers: {
    200: ownJson(members({ created: COUNT, updated: COUNT, unchanged: COUNT }), 'How many of them were new.', {
      created: 3,
      updated: 0,
      unchanged: 0,
    }),
  },
  faults: ['not_found', 'objects_missing', 'conflict', ...WRITE_FAULTS],
  messages: {
    400: '[0].kind must be one of pin, model, version, automation, annotations, logs, run, mark; it is a string',
    404: `there is no model "${MODEL.id}" in this project`,
    409: 'the object "unknown" is not held by this project',
  },
})

const importArtifact = operationOf({
  operationId: 'importArtifact',
  tag: TAG,
  right: 'write',
  summary: 'Take a file of a run under its own id',
  description: 'The body is the file. One that is there already stays as it is. Tokens of runs are refused.',
  ownParameters: [
    queryParameter('runId', 'The run that it belongs to.', RESOURCE_ID.schema, RUN_ID),
    queryParameter('name', 'Its display name: one line of 1 to 255 bytes of UTF-8.', FILE_NAME, ARTIFACT_NAME),
    queryParameter(
      'sha256',
      'The checksum of its bytes, in hex digits.',
      { type: 'string', pattern: '^[0-9a-f]{64}$' },
      createHash('sha256').update(ARTIFACT_TEXT).digest('hex'),
    ),
  ],
  body: FILE_BODY,
  answers: {
    200: ownJson(members({ outcome: { type: 'string', enum: ['created', 'unchanged'] } }), 'What became of it.', {
      outcome: 'created',
    }),
  },
  faults: ['request_aborted', 'body_consumed', 'artifact_too_large', ...WRITE_FAULTS],
  messages: {
    400: 'sha256 must be 64 hex digits in lower case',
    413: 'the artifact is larger than the limit of 268435456 bytes',
  },
})

const getMark = operationOf({
  operationId: 'getMark',
  tag: TAG,
  right: 'write',
  summary: 'How far a mirror has come',
  description:
    'Where the objects of this source go on; `null` for a source that nothing has come from. Tokens of runs are refused.',
  answers: {
    200: ownJson(members({ cursor: { oneOf: [{ type: 'string' }, { type: 'null' }] } }), 'The place.', {
      cursor: '1.2f.0.4.7f.3.9b1c2d3e4f506172',
    }),
  },
  faults: [],
})

const AFTER: Parameter = {
  name: 'after',
  in: 'query',
  description: 'Where to go on: `Stowage-Next` of the page before, or `Stowage-End` of an earlier run.',
  schema: { type: 'string', pattern: CURSOR_TEXT },
  examples: { start: { value: '1.0.0.4.0.3.9b1c2d3e4f506172' } },
}
const END: Parameter = {
  name: 'end',
  in: 'query',
  description:
    '`Stowage-End` of the first page, with every page after it, so that a merge of packs neither hides nor repeats an object.',
  schema: { type: 'string', pattern: CURSOR_TEXT },
  examples: { end: { value: '1.2f.0.4.7f.3.9b1c2d3e4f506172' } },
}
const SEALED_FOR: Parameter = {
  name: 'sealedFor',
  in: 'query',
  description: 'A public key, X25519, EC or RSA: base64url of its DER (SubjectPublicKeyInfo).',
  schema: { type: 'string', pattern: RECIPIENT_TEXT },
  examples: { x25519: { value: 'MCowBQYDK2VuAyEAhSDwCYkwp1R0i33ctD73Wg2_Og0mOBr066SpjqqbTmo' } },
}
const SOURCE_ID: Parameter = {
  name: 'sourceId',
  in: 'path',
  required: true,
  description: 'Names the source, as the mirror chose.',
  schema: RESOURCE_ID.schema,
  examples: { one: { value: '0f1e2d3c4b5a69788796a5b4c3d2e1f0' } },
}

export const ARCHIVES_AREA: ApiArea = {
  tags: [{ name: TAG, description: 'What export, import, mirror and backup ask of a server.' }],
  paths: {
    '/api/v1/projects': {
      get: listProjects,
      head: headOf(listProjects, 'headListProjects', ['200']),
      options: optionsOf('optionsListProjects', TAG),
    },
    [`${PROJECT}/export/objects`]: pathOf([], { get: exportObjects }),
    [`${PROJECT}/export/automations`]: pathOf([], { get: exportAutomations }),
    [`${PROJECT}/import/records`]: pathOf([], { post: importRecords }),
    [`${PROJECT}/import/artifacts/{artifactId}`]: pathOf(['ArtifactId'], { post: importArtifact }),
    [`${PROJECT}/import/marks/{sourceId}`]: pathOf(['SourceId'], { get: getMark }),
  },
  components: {
    parameters: {
      ArtifactId: PARAMETERS.ArtifactId,
      Limit: PARAMETERS.Limit,
      Cursor: PARAMETERS.Cursor,
      ExportAfter: AFTER,
      ExportEnd: END,
      ExportSealedFor: SEALED_FOR,
      SourceId: SOURCE_ID,
    },
  },
}
