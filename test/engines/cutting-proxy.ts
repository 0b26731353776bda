import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { ConnectionCut } from '../../src/storage/conformance/index.ts'
import type { Ending } from '../support/folder.ts'

/** A TCP proxy in front of an engine, which cuts connections at a message, and can stop passing anything on. */
export class CuttingProxy {
  readonly port: number
  readonly #sockets = new Set<Socket>()
  #messagesLeft = Infinity
  #isStalled = false

  private constructor(port: number) {
    this.port = port
  }

  static async start(ending: Ending, enginePort: number): Promise<CuttingProxy> {
    const server = createServer()
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const proxy = new CuttingProxy((server.address() as AddressInfo).port)
    server.on('connection', (client) => proxy.#join(client, connect(enginePort, '127.0.0.1')))
    ending.after(() => {
      server.close()
      proxy.cutAll()
    })
    return proxy
  }

  /** Cuts at the message with this number from now on, in either direction: it does not arrive any more. */
  cutAt(message: number): ConnectionCut {
    this.#messagesLeft = message
    return {
      end: () => {
        const wasCut = this.#messagesLeft <= 0
        this.#messagesLeft = Infinity
        return wasCut
      },
    }
  }

  /** Cuts every connection that there is. */
  cutAll(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  /** From now on nothing passes, and nobody is told, until `resume`. */
  stall(): void {
    this.#isStalled = true
  }

  resume(): void {
    this.#isStalled = false
    this.cutAll()
  }

  #join(client: Socket, engine: Socket): void {
    const ends = [client, engine]
    for (const [at, socket] of ends.entries()) {
      const other = ends[1 - at]
      this.#sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        this.#sockets.delete(socket)
        other.destroy()
      })
      socket.on('data', (bytes) => {
        if (this.#isStalled) return
        this.#messagesLeft--
        // Once: later connections work.
        if (this.#messagesLeft === 0) for (const end of ends) end.destroy()
        else other.write(bytes)
      })
    }
  }
}
