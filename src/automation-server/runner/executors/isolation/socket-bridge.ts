import { writeFile } from 'node:fs/promises'
import { connect, isIP, type Server, type Socket } from 'node:net'
import { join } from 'node:path'

/** The place where a function with a network of its own reaches the server. */
export interface SocketBridge {
  /** The server's URL, as it is inside. */
  readonly insideUrl: string
  /** The port on which something must listen inside. */
  readonly insidePort: number
  /** Where the server is. */
  readonly host: string
  readonly port: number
  /** A name that must lead to the bridge, since the certificate of the server is for it. */
  readonly name?: string
}

/** Below it a program needs rights that a function has not. */
const PORT_MIN = 1_024
const HTTP_PORT = 8_080
const HTTPS_PORT = 8_443
const CONNECTIONS_MAX = 64

/**
 * The way of a function to the server, and to nothing else: a port of its own network, whose connections go on to the
 * server. Throws for a server that has to be called by its address and certificate, as that address is not there
 * inside.
 */
export function bridgeTo(serverUrl: string): SocketBridge {
  const url = new URL(serverUrl)
  const isSecure = url.protocol === 'https:'
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const port = Number(url.port === '' ? (isSecure ? 443 : 80) : url.port)
  if (isSecure && isIP(host) !== 0)
    throw new Error(
      `a function without the network cannot reach ${url.origin}: give the server's URL with http, or with a host name, or give the function the network`,
    )
  const insidePort = port >= PORT_MIN ? port : isSecure ? HTTPS_PORT : HTTP_PORT
  url.port = String(insidePort)
  if (!isSecure) url.hostname = '127.0.0.1'
  return { insideUrl: url.href.replace(/\/$/, ''), insidePort, host, port, ...(isSecure ? { name: host } : {}) }
}

/** The mounts that a bridge with a host name needs inside. */
export async function bridgeMounts({ name }: SocketBridge, folder: string): Promise<readonly string[]> {
  if (name === undefined) return []
  const hosts = join(folder, 'hosts')
  await writeFile(hosts, `127.0.0.1 localhost ${name}\n::1 localhost\n`)
  return ['--ro-bind', hosts, '/etc/hosts']
}

/** Forwards connections to the port inside to the server, until `close`. */
export class OpenBridge {
  readonly #listener: Server
  readonly #sockets = new Set<Socket>()

  constructor(listener: Server, { host, port }: Pick<SocketBridge, 'host' | 'port'>) {
    this.#listener = listener
    listener.maxConnections = CONNECTIONS_MAX
    listener.on('error', () => undefined)
    listener.on('connection', (inside: Socket) => this.#join(inside, connect({ host, port, allowHalfOpen: true })))
  }

  close(): void {
    this.#listener.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  #join(inside: Socket, outside: Socket): void {
    inside.allowHalfOpen = true
    for (const [socket, other] of [
      [inside, outside],
      [outside, inside],
    ] as const) {
      this.#sockets.add(socket)
      socket.on('error', () => other.destroy())
      socket.on('close', () => {
        this.#sockets.delete(socket)
        if (!socket.readableEnded) other.destroy()
      })
      socket.pipe(other)
    }
  }
}
