import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { building } from '../../bench/model/building.ts'
import { automation, type AutomationExtension, readCommandSchema } from '../../src/automation-server/index.ts'
import { createClient } from '../../src/client/index.ts'
import { createObjectService, openAccess } from '../../src/index.ts'

const OBJECTS = 200_000
/** What the 200,000 objects take as objects is several times as much. */
const HEAP_MB_MAX = 64
/** Node, the heap, and the 64 MB of garbage outside of it that V8 lets come together before it collects any. */
const RSS_MB_MAX = 320
const COMMAND: readonly string[] = [
  process.execPath,
  ...process.execArgv,
  fileURLToPath(new URL('./functions/streaming.ts', import.meta.url)),
]

/** A server on a port of this machine that runs the function as a process. */
async function served(t: TestContext): Promise<{ readonly extension: AutomationExtension; readonly url: string }> {
  const path = await mkdtemp(join(tmpdir(), 'stowage-streaming-'))
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const inputs = await readCommandSchema({ command: COMMAND })
  const extension = automation({
    functions: [
      {
        id: 'streaming',
        name: 'Streaming',
        release: '1',
        command: COMMAND,
        env: { NODE_OPTIONS: `--max-old-space-size=${HEAP_MB_MAX}` },
        inputs,
      },
    ],
    serverUrl: url,
  })
  const service = createObjectService({
    backend: filesystemBackend({ path }),
    access: openAccess(),
    extensions: [extension],
  })
  server.on('request', service.node)
  t.after(async () => {
    server.closeAllConnections()
    server.close()
    await service.close({ graceMs: 1_000 })
    await rm(path, { recursive: true })
  })
  return { extension, url }
}

test('over HTTP, a function streams 200,000 objects and annotates thousands in a heap of 64 MB', async (t) => {
  const { extension, url } = await served(t)
  const { lastId: rootObjectId = '' } = await createClient({ url, token: undefined })
    .project('p')
    .upload(building({ objects: OBJECTS, closure: 'root-less' }), { sendAll: true })
  const { models, versions, automations, runs } = extension.project('p')
  const { id: modelId } = await models.create({ name: 'Large' })
  await automations.create({ name: 'Stream', functionId: 'streaming', modelId, inputs: {}, trigger: 'version' })
  await versions.create(modelId, { rootObjectId, message: 'first' })
  await extension.idle()
  const {
    items: [{ id }],
  } = await runs.list()
  const { status, message, result, annotations, startedAt, endedAt } = await runs.get(id)
  assert.equal(status, 'succeeded', message ?? '')
  assert.equal(result?.objects, OBJECTS)
  assert.equal(annotations.WARNING > 1_000, true, `${annotations.WARNING} annotations`)
  const rssMb = Number(result.rssMb)
  t.diagnostic(
    `${rssMb} MB, ${annotations.WARNING} annotations, ${(Date.parse(endedAt ?? '') - Date.parse(startedAt ?? '')) / 1_000} s`,
  )
  assert.ok(rssMb < RSS_MB_MAX, `${rssMb} MB`)
})
