import { spawn } from 'node:child_process'
import { open } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { crc32 } from 'node:zlib'
import { type RunningServer, serverOf } from '../server-process.ts'

/** As fast for the first answer as any of 64, 128, 256, 512 and 1,024 KB. */
const PIECE_BYTES = 524_288

/**
 * A process of its own that answers each request with this file, and does nothing that Stowage could do without for a
 * planned download: it reads one piece ahead, computes the checksum of each and sends it.
 */
export async function startPlainServer(file: string): Promise<RunningServer> {
  const args = [...process.execArgv, fileURLToPath(import.meta.url), 'plain-server', file]
  return await serverOf(spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] }))
}

async function answer(file: string, response: ServerResponse): Promise<void> {
  const descriptor = await open(file)
  const { size } = await descriptor.stat()
  response.setHeader('Content-Length', size)
  const read = async (position: number): Promise<Uint8Array> => {
    const buffer = Buffer.allocUnsafeSlow(Math.min(PIECE_BYTES, size - position))
    const { bytesRead } = await descriptor.read(buffer, 0, buffer.length, position)
    return buffer.subarray(0, bytesRead)
  }
  let next = read(0)
  for (let at = 0; at < size;) {
    const piece = await next
    at += piece.length
    if (at < size) next = read(at)
    crc32(piece)
    if (!response.write(piece)) await once(response, 'drain')
  }
  response.end()
  await descriptor.close()
}

function serve(file: string): void {
  const server = createServer((_, response) => void answer(file, response)).listen(0, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo
    console.log(JSON.stringify({ url: `http://127.0.0.1:${port}`, pid: process.pid }))
  })
}

if (process.argv[2] === 'plain-server') serve(process.argv[3])
