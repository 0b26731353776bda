import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { runClient, runPython, startServer, type TestServer } from './support.ts'

/** Bodies over the limit of 50 MB, some of which clients are still sending when the answer comes. */
const SIZES_MB: readonly number[] = [51, 75, 100]
const ROUNDS = 3
const MB = 1_048_576

let folder: string
let server: TestServer

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stowage-clients-'))
  for (const megabytes of SIZES_MB) await writeFile(join(folder, `${megabytes}`), Buffer.alloc(megabytes * MB, ' '))
  server = await startServer()
})

after(async () => {
  await server[Symbol.asyncDispose]()
  await rm(folder, { recursive: true })
})

for (const framing of ['Content-Length', 'Transfer-Encoding: chunked'] as const) {
  test(`curl sees 413 for bodies over the limit, with ${framing}`, async () => {
    const framingArgs = framing === 'Content-Length' ? [] : ['-H', framing]
    for (const megabytes of SIZES_MB) {
      for (let round = 0; round < ROUNDS; round++) {
        const args = [
          '-sS',
          '-w',
          '\n%{http_code}',
          '-H',
          'Content-Type: application/json',
          '-H',
          'Expect:',
          ...framingArgs,
        ]
        const printed = await runClient('curl', [
          ...args,
          '--data-binary',
          `@${join(folder, `${megabytes}`)}`,
          `${server.url}/objects/demo`,
        ])
        const [body, status] = printed.split('\n')
        assert.equal(status, '413')
        assert.equal((JSON.parse(body) as { statusCode: number }).statusCode, 413)
      }
    }
  })
}

const POST_FILES = `
import json, os, requests
statuses = []
for size in json.loads(os.environ['SIZES']):
    path = os.path.join(os.environ['FOLDER'], str(size))
    for _ in range(int(os.environ['ROUNDS'])):
        with open(path, 'rb') as file:
            statuses.append(requests.post(os.environ['URL'], data=file, headers={'Content-Type': 'application/json'}).status_code)
        with open(path, 'rb') as file:
            statuses.append(requests.post(os.environ['URL'], files={'file': ('batch.json', file, 'application/json')}).status_code)
print(json.dumps(statuses))
`

test('Python requests sees 413 for whole and multipart bodies over the limit', async () => {
  const environment = {
    SIZES: JSON.stringify(SIZES_MB),
    FOLDER: folder,
    ROUNDS: String(ROUNDS),
    URL: `${server.url}/objects/demo`,
  }
  const statuses = await runPython(POST_FILES, environment)
  assert.deepEqual(statuses, Array<number>(SIZES_MB.length * ROUNDS * 2).fill(413))
})
