import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { ConnectionCut } from '../../src/storage/conformance/index.ts'
import type { Ending } from '../support/folder.ts'

/** A TCP proxy in front of an engine, which cuts connections at a message, and can stop passing anything on. */
export class CuttingProxy {
  readonly port: number
  readonly #sockets = new Set<Socket>()
  #messagesLeft = Infinity
  #cutEvery: number | undefined
  #cuts = 0
  /** How many bytes each connection still passes in each direction. */
  #passes: { readonly bytes: number } = { bytes: Infinity }
  #stalledMidway = 0

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

  /** From now on cuts at every so many messages. */
  cutEvery(messages: number): void {
    this.#cutEvery = messages
    this.#messagesLeft = messages
  }

  /** How often it cut at a message. */
  get cuts(): number {
    return this.#cuts
  }

  /** Cuts every connection that there is. */
  cutAll(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  /**
   * From now on each connection passes so many bytes in each direction, then nothing, and nobody is told, until
   * `resume`.
   */
  stall(afterBytes = 0): void {
    this.#passes = { bytes: afterBytes }
    this.#stalledMidway = 0
  }

  resume(): void {
    this.#passes = { bytes: Infinity }
    this.cutAll()
  }

  /** How often the last stall began in the middle of a message: some of it had passed. */
  get stalledMidway(): number {
    return this.#stalledMidway
  }

  #join(client: Socket, engine: Socket): void {
    const ends = [client, engine]
    for (const [at, socket] of ends.entries()) {
      const other = ends[1 - at]
      let passes = this.#passes
      let passedBytes = 0
      this.#sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        this.#sockets.delete(socket)
        other.destroy()
      })
      socket.on('data', (bytes) => {
        if (passes !== this.#passes) passedBytes = 0
        passes = this.#passes
        const leftBytes = passes.bytes - passedBytes
        if (bytes.length > leftBytes) {
          if (leftBytes > 0) {
            this.#stalledMidway++
            other.write(bytes.subarray(0, leftBytes))
          }
          passedBytes = passes.bytes
          return
        }
        passedBytes += bytes.length
        this.#messagesLeft--
        if (this.#messagesLeft !== 0) {
          other.write(bytes)
          return
        }
        // Once, unless told otherwise: later connections work.
        this.#messagesLeft = this.#cutEvery ?? 0
        this.#cuts++
        for (const end of ends) end.destroy()
      })
    }
  }
}
