export interface DemoRequest {
  readonly endpoint: string
  readonly explanation: string
  /** A line for a shell in which `STOWAGE` and `TOKEN` are set. */
  readonly command: string
  /** The output of the line matches this. */
  readonly prints: RegExp
}

export interface DemoModel {
  readonly projectId: string
  readonly rootId: string
  readonly childId: string
  readonly objects: number
}

const AUTHORIZED = 'curl -s --compressed -H "Authorization: Bearer $TOKEN"'

/** One line for each endpoint, as they are printed by `npm start` and tried by its smoke test. */
export function demoRequests({ projectId, rootId, childId, objects }: DemoModel): readonly DemoRequest[] {
  const ids = idList([rootId, childId])
  return [
    {
      endpoint: 'POST /api/diff/{projectId}',
      explanation: 'which of these does the server hold?',
      command: `${AUTHORIZED} -H 'Content-Type: application/json' -d '${idList([rootId, 'not-there'])}' $STOWAGE/api/diff/${projectId}; echo`,
      prints: new RegExp(`^\\{"${rootId}":true,"not-there":false\\}\\n$`),
    },
    {
      endpoint: 'POST /objects/{projectId}',
      explanation: 'upload a gzipped batch; sent again, it changes nothing',
      command: `echo '[{"id":"hello","speckle_type":"Base","text":"Hello"}]' | gzip | ${AUTHORIZED} -F 'file=@-;type=application/gzip;filename=batch.json.gz' $STOWAGE/objects/${projectId}; echo`,
      prints: /^\{.*\}\n$/,
    },
    {
      endpoint: 'GET /objects/{projectId}/{objectId}/single',
      explanation: 'one object without its children',
      command: `${AUTHORIZED} $STOWAGE/objects/${projectId}/${childId}/single | head -c 300; echo`,
      prints: new RegExp(`^\\{"id":"${childId}",`),
    },
    {
      endpoint: 'POST /api/getobjects/{projectId}',
      explanation: 'a list of objects, as a JSON array',
      command: `${AUTHORIZED} -H 'Content-Type: application/json' -d '${ids}' $STOWAGE/api/getobjects/${projectId} | head -c 300; echo`,
      prints: /^\[\{"id":"/,
    },
    {
      endpoint: 'POST /api/getobjects/{projectId}',
      explanation: 'the same as lines of id, tab and object',
      command: `${AUTHORIZED} -H 'Accept: text/plain' -H 'Content-Type: application/json' -d '${ids}' $STOWAGE/api/getobjects/${projectId} | cut -c 1-150`,
      prints: /^[0-9a-f]{32}\t\{"id":".*\n[0-9a-f]{32}\t\{"id":".*\n$/,
    },
    {
      endpoint: 'GET /objects/{projectId}/{objectId}',
      explanation: 'the whole model, as a JSON array, the root first',
      command: `${AUTHORIZED} $STOWAGE/objects/${projectId}/${rootId} | head -c 300; echo`,
      prints: new RegExp(`^\\[\\{"id":"${rootId}",`),
    },
    {
      endpoint: 'GET /objects/{projectId}/{objectId}',
      explanation: `the whole model as lines: ${objects} of them`,
      command: `${AUTHORIZED} -H 'Accept: text/plain' $STOWAGE/objects/${projectId}/${rootId} | wc -l`,
      prints: new RegExp(`^ *${objects}\\n$`),
    },
    {
      endpoint: 'GET /objects/{projectId}/{objectId}?archive=gzip',
      explanation: 'the whole model as one gzip file, which can be resumed',
      command: `curl -s -H "Authorization: Bearer $TOKEN" -H 'Accept: text/plain' "$STOWAGE/objects/${projectId}/${rootId}?archive=gzip" | gunzip | wc -l`,
      prints: new RegExp(`^ *${objects}\\n$`),
    },
    {
      endpoint: 'POST /api/v2/projects/{projectId}/object-stream',
      explanation: 'a list of objects, of each only some fields',
      command: `${AUTHORIZED} -H 'Content-Type: application/json' -d '{"objectIds":["${rootId}","${childId}"],"attributeMask":{"include":["name"]}}' $STOWAGE/api/v2/projects/${projectId}/object-stream`,
      prints: /^(?:[0-9a-f]{32}\t\{"id":"[0-9a-f]{32}"(?:,"name":"[^"]*")?\}\n){2}$/,
    },
  ]
}

/** A body as the contract has it: a string that holds a JSON array. */
function idList(ids: readonly string[]): string {
  return JSON.stringify({ objects: JSON.stringify(ids) })
}
