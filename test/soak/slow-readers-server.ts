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

/**
 * Begins so many answers through the fetch core and reads one piece of each. Resolves to how many were refused for lack
 * of memory: no system takes anything of the others over.
 */
async function beginInProcess(count: number, path: string, init: RequestInit): Promise<number> {
  let refused = 0
  const begin = async (): Promise<void> => {
    const { body, status, headers } = await service.fetch(new Request(`http://in.process${path}`, init))
    if (status === 503 && headers.has('Retry-After')) return void refused++
    if (body === null || status !== 200) throw new Error(`answered ${status}`)
    const reader = body.getReader() as ReadableStreamDefaultReader<Uint8Array>
    await reader.read()
    reading.push(reader)
  }
  await Promise.all(Array.from({ length: count }, begin))
  return refused
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
    void done.then((answer) => process.send?.(answer))
  },
)

await service.ready()
const server = createServer(service.node).listen(0, '127.0.0.1')
await once(server, 'listening')
process.send?.((server.address() as AddressInfo).port)
