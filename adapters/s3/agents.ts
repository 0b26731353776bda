import { Agent as HttpAgent, type ClientRequestArgs } from 'node:http'
import { Agent as HttpsAgent, type AgentOptions } from 'node:https'
import type { OnReadOpts, Socket } from 'node:net'

/** What one read of a socket may bring. */
const READ_BYTES = 65_536

/**
 * Keeps connections. Each socket reads into the same memory again and again. By default Node allocates 64 KB for each
 * read, which V8 then has to collect.
 */
export function agentFor(protocol: string, options: AgentOptions): HttpAgent {
  return protocol === 'https:' ? new TlsAgent(options) : new PlainAgent(options)
}

class PlainAgent extends HttpAgent {
  override createConnection(...[options]: ConnectionArgs): Connection {
    return connectReusing(options, (options) => super.createConnection(options))
  }
}

class TlsAgent extends HttpsAgent {
  override createConnection(...[options]: ConnectionArgs): Connection {
    return connectReusing(options, (options) => super.createConnection(options))
  }
}

type ConnectionArgs = Parameters<HttpAgent['createConnection']>
type Connection = ReturnType<HttpAgent['createConnection']>

function connectReusing(
  options: ClientRequestArgs,
  connect: (options: ClientRequestArgs & { readonly onread: OnReadOpts }) => Connection,
): Connection {
  const reads = new Reads()
  reads.socket = connect({ ...options, onread: reads }) as Socket
  return reads.socket
}

/** Passes what arrives to a socket's own stream. */
class Reads implements OnReadOpts {
  socket: Socket | undefined
  #memory = Buffer.allocUnsafeSlow(READ_BYTES)

  /** Asked for after each read. What nobody took at once waits in the stream, and keeps its memory. */
  readonly buffer = (): Uint8Array => {
    if (this.socket !== undefined && this.socket.readableLength > 0) this.#memory = Buffer.allocUnsafeSlow(READ_BYTES)
    return this.#memory
  }

  readonly callback = (bytes: number, buffer: Uint8Array): boolean =>
    this.socket?.push(buffer.subarray(0, bytes)) ?? false
}
