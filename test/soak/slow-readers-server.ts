import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { createObjectService, openAccess } from '../../src/index.ts'

/**
 * Serves the folder that is named, tells its port, and answers each message with what memory it takes. Started by tests
 * with an IPC channel.
 */

const service = createObjectService({ backend: filesystemBackend({ path: process.argv[2] }), access: openAccess() })
const reading: ReadableStreamDefaultReader<Uint8Array>[] = []

/** Begins so many answers through the fetch core and reads one piece of each. */
async function beginInProcess(count: number, path: string, init: RequestInit): Promise<void> {
  for (let n = 0; n < count; n++) {
    const { body, status } = await service.fetch(new Request(`http://in.process${path}`, init))
    if (body === null || status !== 200) throw new Error(`answered ${status}`)
    const reader = body.getReader() as ReadableStreamDefaultReader<Uint8Array>
    await reader.read()
    reading.push(reader)
  }
}

async function memory(): Promise<{ readonly rssBytes: number; readonly buffersBytes: number }> {
  for (let round = 0; round < 3; round++) {
    globalThis.gc?.()
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  const { rss, arrayBuffers } = process.memoryUsage()
  return { rssBytes: rss, buffersBytes: arrayBuffers }
}

process.on(
  'message',
  (message: { readonly count: number; readonly path: string; readonly init: RequestInit } | 'memory') => {
    const done = message === 'memory' ? memory() : beginInProcess(message.count, message.path, message.init)
    void done.then((answer) => process.send?.(answer ?? 'begun'))
  },
)

await service.ready()
const server = createServer(service.node).listen(0, '127.0.0.1')
await once(server, 'listening')
process.send?.((server.address() as AddressInfo).port)
