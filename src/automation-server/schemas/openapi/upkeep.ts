import type { ServiceErrorCode } from '../../../errors.ts'
import { headersOf, schemaRef } from '../../../openapi/description/shared.ts'
import type { Operation, Parameter, Paths, RequestBody, Response, Tag } from '../../../openapi/description/types.ts'
import { UNKNOWN_ID } from '../../../openapi/objects/examples.ts'
import { jsonAnswer, jsonBody, operationOf, pathOf, PROJECT, WRITE_FAULTS } from './parts.ts'

const TAG = 'Upkeep'
const DAY_MS = 86_400_000
const NO_PROJECT = { 404: 'the project "nobody" holds no objects' }

/** The lines of work that may take longer than a proxy waits. */
function linesAnswer(description: string, progress: string, report: string): Response {
  return {
    description,
    headers: headersOf(['Cache-Control', 'X-Accel-Buffering']),
    content: {
      'application/x-ndjson': {
        schema: { type: 'string', description: 'JSON objects of one member each, one a line.' },
        'x-lines': { progress: schemaRef(progress), report: schemaRef(report), error: schemaRef('Error') },
      },
    },
  }
}

const LINES_WORDS =
  'The answer is lines of JSON: `{"progress": ...}` at least every five seconds, `null` before there is any, and `{"report": ...}` last, or `{"error": ...}` for work that fails after a second. Closing the connection stops the work without loss; repeating the request continues it.'

interface LongWords {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly body?: RequestBody
  readonly progress: string
  readonly report: string
  readonly faults: readonly ServiceErrorCode[]
}

function longOperation({ progress, report, description, ...words }: LongWords): Operation {
  return operationOf({
    ...words,
    description: [description, LINES_WORDS].join('\n\n'),
    tag: TAG,
    right: 'write',
    answers: { 200: linesAnswer('How far it is, and the result.', progress, report) },
    messages: NO_PROJECT,
  })
}

const collectProject = longOperation({
  operationId: 'collectProject',
  summary: 'Collect objects that nothing leads to',
  description:
    'Condemns the objects that no version, no pin and no young object leads to, and frees those that were condemned for longer than `undoMs`. Uploads and downloads go on meanwhile. A project with neither a version nor a pin is never collected.',
  body: jsonBody(
    'CollectRequest',
    'How to collect; without a body, with the defaults.',
    { dryRun: { value: { dryRun: true } }, month: { value: { olderThanMs: 30 * DAY_MS, undoMs: 30 * DAY_MS } } },
    false,
  ),
  progress: 'CollectionProgress',
  report: 'CollectionReport',
  faults: ['not_found', ...WRITE_FAULTS],
})

const restoreCollected = longOperation({
  operationId: 'restoreCollected',
  summary: 'Undo collections',
  description: 'Condemned objects that were not freed are live again.',
  progress: 'CollectionProgress',
  report: 'ObjectAmount',
  faults: ['not_found', ...WRITE_FAULTS],
})

const compactProject = longOperation({
  operationId: 'compactProject',
  summary: 'Merge packs',
  description:
    'Merges small packs and packs with much that was collected. Uploads and downloads go on meanwhile. The packs that were replaced leave the disk a day later, when no download can read them any more.',
  body: jsonBody(
    'CompactRequest',
    'How to compact; without a body, the fewest merges that keep the number of packs low.',
    { all: { value: { all: true } } },
    false,
  ),
  progress: 'CompactionProgress',
  report: 'CompactionReport',
  faults: ['not_found'],
})

const collectObjects = longOperation({
  operationId: 'collectObjects',
  summary: 'Collect chosen objects',
  description:
    'Condemns chosen objects with everything below them, as far as neither a version nor a pin nor an object that was not chosen leads to them. Works in projects without versions and pins too.',
  body: jsonBody('CollectObjectsRequest', 'The objects.', { dryRun: { value: { ids: [UNKNOWN_ID], dryRun: true } } }),
  progress: 'CollectionProgress',
  report: 'ChosenReport',
  faults: ['not_found', ...WRITE_FAULTS],
})

const TOPS: Parameter = {
  name: 'tops',
  in: 'query',
  description: 'Only objects that no other object refers to. `false` by default.',
  schema: { type: 'boolean' },
  examples: { only: { value: true } },
}

const listUnreferenced = operationOf({
  operationId: 'listUnreferenced',
  tag: TAG,
  right: 'read',
  summary: 'Objects that nothing leads to',
  description:
    'Objects that no version and no pin leads to, in the order in which they are stored. In a project without versions and pins these are all objects. A part may be empty before the end. In a large project the answer can take a while.',
  parameters: ['Limit', 'ObjectCursor'],
  ownParameters: [TOPS],
  answers: { 200: jsonAnswer('UnreferencedObjectPage', 'The objects.', {}) },
  faults: ['not_found', 'conflict'],
  messages: { ...NO_PROJECT, 409: 'the project was removed and begun anew; begin the list anew' },
})

export const UPKEEP_TAG: Tag = {
  name: TAG,
  description: 'Collection frees objects that nothing leads to; compaction merges packs.',
}

export const UPKEEP_PATHS: Paths = {
  [`${PROJECT}/collect`]: pathOf([], { post: collectProject }),
  [`${PROJECT}/restore-collected`]: pathOf([], { post: restoreCollected }),
  [`${PROJECT}/compact`]: pathOf([], { post: compactProject }),
  [`${PROJECT}/unreferenced`]: pathOf([], { get: listUnreferenced }),
  [`${PROJECT}/unreferenced/collect`]: pathOf([], { post: collectObjects }),
}
