import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'

export interface CountingProxy {
  readonly url: string
  /** Bytes since the last `reset`, from clients and to them. */
  readonly up: () => number
  readonly down: () => number
  readonly breaks: () => number
  reset(): void
  /** Resolves when so many bytes went by since the last `reset`. */
  passed(bytes: number): Promise<void>
}

/** Passes everything on and counts it. With `breakEveryBytes`, each connection is destroyed once so many bytes went over it, to and fro. */
export async function countingProxy(t: TestContext, target: string, breakEveryBytes: number = Infinity): Promise<CountingProxy> {
  const { hostname, port } = new URL(target)
  let up = 0
  let down = 0
  let breaks = 0
  const waiting: { readonly bytes: number; readonly resolve: () => void }[] = []
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    let left = breakEveryBytes
    const count = (chunk: Buffer): void => {
      left -= chunk.length
      for (const { bytes, resolve } of waiting) if (up + down >= bytes) resolve()
      if (left > 0) return
      breaks += 1
      client.resetAndDestroy()
      upstream.destroy()
    }
    client.on('data', (chunk: Buffer) => {
      up += chunk.length
      count(chunk)
    })
    upstream.on('data', (chunk: Buffer) => {
      down += chunk.length
      count(chunk)
    })
    join(client, upstream)
    join(upstream, client)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    up: () => up,
    down: () => down,
    breaks: () => breaks,
    reset: () => {
      up = down = breaks = 0
    },
    passed: (bytes) => new Promise((resolve) => waiting.push({ bytes, resolve })),
  }
}

function join(from: Socket, to: Socket): void {
  from.on('error', () => undefined)
  from.on('close', () => to.destroy())
  from.pipe(to)
}
