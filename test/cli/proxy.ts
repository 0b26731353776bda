import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'

export interface CountingProxy {
  readonly url: string
  /** Bytes since the last `reset`, from clients and to them. */
  readonly up: () => number
  readonly down: () => number
  readonly breaks: () => number
  /**
   * Connections of before end. With `breakEveryBytes`, each new one is destroyed once so many bytes went over it, to
   * and fro.
   */
  reset(breakEveryBytes?: number): void
  /**
   * Resolves when so many bytes went by since the last `reset`; nothing more does, on any connection, until the next
   * one.
   */
  holdAfter(bytes: number): Promise<void>
}

/** Passes everything on and counts it. */
export async function countingProxy(t: TestContext, target: string): Promise<CountingProxy> {
  const { hostname, port } = new URL(target)
  let up = 0
  let down = 0
  let breaks = 0
  let breakEveryBytes = Infinity
  const clients = new Set<Socket>()
  let hold: { readonly bytes: number; readonly resolve: () => void } | undefined
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    let left = breakEveryBytes
    clients.add(client)
    client.once('close', () => clients.delete(client))
    const count = (chunk: Buffer): void => {
      left -= chunk.length
      if (hold !== undefined && up + down >= hold.bytes) {
        for (const socket of [client, upstream]) socket.unpipe().pause()
        hold.resolve()
      }
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
    reset: (newBreakEveryBytes = Infinity) => {
      for (const client of clients) client.destroy()
      breakEveryBytes = newBreakEveryBytes
      up = down = breaks = 0
      hold = undefined
    },
    holdAfter: (bytes) =>
      new Promise((resolve) => {
        hold = { bytes, resolve }
      }),
  }
}

function join(from: Socket, to: Socket): void {
  from.on('error', () => undefined)
  from.on('close', () => to.destroy())
  from.pipe(to)
}
