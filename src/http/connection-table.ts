import type { Socket } from 'node:net'

interface Connection {
  readonly socket: Socket
  /** By which it is found, also when it has closed and knows its address no more. */
  readonly key: Socket | string
  /** Whose waiting connections it counts with; none for those of proxies. */
  readonly group: string | undefined
  requests: number
}

export interface TableLimits {
  readonly connectionsMax: number
  readonly waitingPerAddressMax: number
}

/**
 * The open connections of a server, and for each group of addresses those that wait for a request, the longest waiting
 * first.
 */
export class ConnectionTable {
  readonly #limits: TableLimits
  readonly #closing: (limit: keyof TableLimits, socket: Socket) => void
  readonly #open = new Map<Socket | string, Connection>()
  readonly #waiting = new Map<string, Set<Connection>>()

  /** `closing` is told of each connection that is about to be closed at a limit. */
  constructor(limits: TableLimits, closing: (limit: keyof TableLimits, socket: Socket) => void) {
    this.#limits = limits
    this.#closing = closing
  }

  /** Accepts a new connection, at a bound in the place of another; closes it if no other can give way. */
  add(socket: Socket, group: string | undefined): void {
    const key = keyOf(socket)
    if (this.#open.size >= this.#limits.connectionsMax && !this.#makeRoom()) {
      this.#destroy(socket, 'connectionsMax')
      return
    }
    const connection: Connection = { socket, key, group, requests: 0 }
    this.#open.set(key, connection)
    this.#wait(connection)
    socket.once('close', () => {
      this.#forget(connection)
    })
    const waiting = group === undefined ? undefined : this.#waiting.get(group)
    if (waiting !== undefined && waiting.size > this.#limits.waitingPerAddressMax)
      this.#close(firstOf(waiting), 'waitingPerAddressMax')
  }

  /**
   * A complete request has come on this connection. `leave` is to be called at the end of its response. `group` is that
   * of the connection; `undefined` for those of proxies.
   */
  begin(socket: Socket): { readonly group: string | undefined; readonly leave: () => void } {
    const connection = this.#open.get(socket) ?? this.#open.get(keyOf(socket))
    if (connection === undefined) return { group: undefined, leave: () => undefined }
    if (++connection.requests === 1) this.#stopWaiting(connection)
    const leave = (): void => {
      if (--connection.requests === 0 && this.#open.get(connection.key) === connection) this.#wait(connection)
    }
    return { group: connection.group, leave }
  }

  #makeRoom(): boolean {
    let most: Set<Connection> | undefined
    for (const waiting of this.#waiting.values()) if (waiting.size > (most?.size ?? 0)) most = waiting
    if (most === undefined) return false
    this.#close(firstOf(most), 'connectionsMax')
    return true
  }

  #close(connection: Connection, limit: keyof TableLimits): void {
    this.#forget(connection)
    this.#destroy(connection.socket, limit)
  }

  /** Told before: a destroyed socket no longer knows its address. */
  #destroy(socket: Socket, limit: keyof TableLimits): void {
    try {
      this.#closing(limit, socket)
    } finally {
      socket.destroy()
    }
  }

  /** Its port may have been taken by another connection meanwhile. */
  #forget(connection: Connection): void {
    this.#stopWaiting(connection)
    if (this.#open.get(connection.key) === connection) this.#open.delete(connection.key)
  }

  #wait(connection: Connection): void {
    const { group } = connection
    if (group === undefined) return
    const waiting = this.#waiting.get(group) ?? new Set()
    this.#waiting.set(group, waiting.add(connection))
  }

  #stopWaiting(connection: Connection): void {
    const { group } = connection
    const waiting = group === undefined ? undefined : this.#waiting.get(group)
    if (group !== undefined && waiting?.delete(connection) === true && waiting.size === 0) this.#waiting.delete(group)
  }
}

/** The same for a TLS connection and for the one below it, which Node announces first. */
function keyOf(socket: Socket): Socket | string {
  return socket.remotePort === undefined
    ? socket
    : `${socket.remoteAddress} ${socket.remotePort} ${socket.localAddress} ${socket.localPort}`
}

function firstOf(connections: ReadonlySet<Connection>): Connection {
  const [first] = connections
  return first
}
