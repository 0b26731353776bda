import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { buildModel, jsonArray } from '../support/model.ts'
import { runPython, startServer } from './support.ts'

/** The requests of the Python client of the existing service: gzipped file parts, and lists of ids as forms. */
const ROUND_TRIP = `
import gzip, json, os, requests
url, model = os.environ['URL'], json.load(open(os.environ['MODEL'], encoding='utf-8'))
session = requests.Session()
session.headers.update({'Accept': 'text/plain'})
ids = [item['id'] for item in model]
part = gzip.compress(json.dumps(model).encode('utf-8'))
upload = session.post(url + '/objects/demo', files={'batch-1': ('batch-1', part, 'application/gzip')})
diff = session.post(url + '/api/diff/demo', data={'objects': json.dumps(ids + ['absent'])})
listed = session.post(url + '/api/getobjects/demo', data={'objects': json.dumps(ids)}, stream=True)
received = {}
for line in listed.iter_lines():
    if line:
        id, text = line.decode('utf-8').split('\\t')
        received[id] = json.loads(text)
single = session.get(url + '/objects/demo/' + ids[-1] + '/single')
print(json.dumps({
    'upload': upload.status_code, 'held': sum(diff.json().values()), 'absent': diff.json()['absent'],
    'same': received == {item['id']: item for item in model}, 'single': single.json() == model[-1],
}))
`

test('the Python client uploads a model and downloads it unchanged', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'stowage-python-'))
  const server = await startServer()
  try {
    await writeFile(join(folder, 'model.json'), jsonArray(buildModel({ objects: 2_000 }).objects))
    const seen = await runPython(ROUND_TRIP, { URL: server.url, MODEL: join(folder, 'model.json') })
    assert.deepEqual(seen, { upload: 200, held: 2_000, absent: false, same: true, single: true })
  } finally {
    await server[Symbol.asyncDispose]()
    await rm(folder, { recursive: true })
  }
})
