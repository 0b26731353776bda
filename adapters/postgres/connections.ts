import { linkedAbort, onAbort, orAborted } from '../../src/async/abort.ts'
import { Semaphore } from '../../src/async/semaphore.ts'
import { statementName } from './connection-options.ts'
import { engineError, isRefusal } from './postgres-errors.ts'

/** The part of a pool of `pg` that is used. Every `Pool` has it. */
export interface PostgresPool {
  /** A connection that nobody else uses until it is released. */
  connect(): Promise<PostgresPoolClient>
  /** Adds a listener, which receives each new connection before anyone has it. */
  on(event: 'connect', listener: (client: PostgresPoolClient) => void): unknown
  /** Removes a listener. */
  removeListener(event: 'connect', listener: (client: PostgresPoolClient) => void): unknown
}

/** The part of a connection of `pg` that is used. Every `PoolClient` has it. */
export interface PostgresPoolClient {
  /** Runs a statement. Values are sent as they are. */
  query(statement: {
    name?: string
    text: string
    values?: unknown[]
  }): Promise<{ readonly rows: readonly Readonly<Record<string, unknown>>[] }>
  /** Adds a listener. */
  on(event: 'error', listener: (error: Error) => void): unknown
  /** Removes a listener. */
  removeListener(event: 'error', listener: (error: Error) => void): unknown
  /** Gives the connection back; `true` closes it. */
  release(isBroken?: boolean): void
}

export type Row = Readonly<Record<string, unknown>>

/** One connection in the hands of one call. */
export interface Connection {
  query(text: string, values?: readonly unknown[]): Promise<readonly Row[]>
}

export interface ConnectionsOptions {
  /** Calls that run at once. */
  readonly connectionsMax: number
  /** How long one call may take, its wait for a connection included. */
  readonly callTimeoutMs: number
  /** Throws if a connection must not be used. Runs once for each. */
  readonly check: (connection: Connection) => Promise<void>
}

/** Connections of a pool: checked once, bounded in number and time, and given back when they are idle. */
export class Connections {
  readonly #pool: PostgresPool
  readonly #options: ConnectionsOptions
  readonly #turns: Semaphore
  readonly #checked = new WeakSet<PostgresPoolClient>()
  readonly #underWay = new Set<Promise<unknown>>()
  /** What broke each connection. */
  readonly #errors = new WeakMap<PostgresPoolClient, Error>()
  /**
   * Without a listener a connection that breaks ends the process. PostgreSQL can say in one breath that a new connection
   * is ready and that it ends: whoever waits for it learns of both too late to listen.
   */
  readonly #listen = (client: PostgresPoolClient): void =>
    void client.on('error', (error) => this.#errors.set(client, error))

  constructor(pool: PostgresPool, options: ConnectionsOptions) {
    this.#pool = pool
    this.#options = options
    this.#turns = new Semaphore(options.connectionsMax)
    pool.on('connect', this.#listen)
  }

  /**
   * Runs `work` on a connection. Rejects at once when the signal aborts; PostgreSQL then ends the statement that runs,
   * and the connection goes back to the pool when it has. Rejects, and closes the connection, if the time is up.
   */
  async run<T>(signal: AbortSignal | undefined, work: (connection: Connection) => Promise<T>): Promise<T> {
    const { callTimeoutMs } = this.#options
    const late = new AbortController()
    const timer = setTimeout(
      () => late.abort(new Error(`PostgreSQL did not answer within ${callTimeoutMs} ms`)),
      callTimeoutMs,
    )
    const { controller: stop, unlink } = linkedAbort(signal)
    onAbort(late.signal, () => stop.abort(late.signal.reason))
    const task = this.#turns
      .run(stop.signal, () => this.#onClient(stop.signal, late.signal, work))
      .finally(() => clearTimeout(timer))
    this.#underWay.add(task)
    const settled = (): boolean => this.#underWay.delete(task)
    task.then(settled, settled)
    try {
      return await orAborted(task, stop.signal)
    } catch (error) {
      throw engineError(error)
    } finally {
      unlink()
    }
  }

  /** Waits until every connection was given back. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#underWay)
    this.#pool.removeListener('connect', this.#listen)
  }

  async #onClient<T>(stop: AbortSignal, late: AbortSignal, work: (connection: Connection) => Promise<T>): Promise<T> {
    const client = await this.#connect(late)
    if (stop.aborted) client.release()
    stop.throwIfAborted()
    // A pool of the host may have made the connection before it was ours.
    client.on('error', ignore)
    let isBroken = true
    try {
      const result = await orAborted(this.#checkedWork(client, work), late)
      isBroken = false
      return result
    } catch (error) {
      isBroken = !isRefusal(error)
      throw this.#errors.get(client) ?? error
    } finally {
      client.removeListener('error', ignore)
      client.release(isBroken)
    }
  }

  async #connect(late: AbortSignal): Promise<PostgresPoolClient> {
    const connecting = this.#pool.connect()
    try {
      return await orAborted(connecting, late)
    } catch (error) {
      // One that comes too late goes back unused.
      void connecting.then(
        (unused) => unused.release(),
        () => undefined,
      )
      throw error
    }
  }

  async #checkedWork<T>(client: PostgresPoolClient, work: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = new ClientConnection(client)
    if (!this.#checked.has(client)) {
      await this.#options.check(connection)
      this.#checked.add(client)
    }
    return work(connection)
  }
}

function ignore(): void {}

class ClientConnection implements Connection {
  readonly #client: PostgresPoolClient

  constructor(client: PostgresPoolClient) {
    this.#client = client
  }

  async query(text: string, values?: readonly unknown[]): Promise<readonly Row[]> {
    const { rows } = await this.#client.query(
      values ? { name: statementName(text), text, values: [...values] } : { text },
    )
    return rows
  }
}
