import type { ApiArea } from '../description/compose.ts'
import { GRAPH_PATH, SINGLE_PATH } from './read.ts'
import { LIST_PATH, STREAM_PATH } from './lists.ts'
import { HEADERS, PARAMETERS, TAG } from './parts.ts'
import { SCHEMAS } from './schemas.ts'
import { DIFF_PATH, UPLOAD_PATH } from './write.ts'

/** Checking, uploading and downloading objects. */
export const OBJECT_AREA: ApiArea = {
  tags: [
    {
      name: TAG,
      description:
        'Checking, uploading and downloading objects of projects. The rights: `write` for diff and upload, `read` for the others; `write` includes `read`.',
    },
  ],
  paths: {
    '/api/diff/{projectId}': DIFF_PATH,
    '/objects/{projectId}': UPLOAD_PATH,
    '/objects/{projectId}/{objectId}/single': SINGLE_PATH,
    '/api/getobjects/{projectId}': LIST_PATH,
    '/objects/{projectId}/{objectId}': GRAPH_PATH,
    '/api/v2/projects/{projectId}/object-stream': STREAM_PATH,
  },
  components: { schemas: SCHEMAS, parameters: PARAMETERS, headers: HEADERS },
}
