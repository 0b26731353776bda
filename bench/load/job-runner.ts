import { readFile } from 'node:fs/promises'
import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { Connection } from './connection.ts'
import type { Exchange, Job, Report, Timing } from './job.ts'

const BOUNDARY = 'stowage-benchmark-boundary'
const PART_START = `--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="batch.json.gz"\r\nContent-Type: application/gzip\r\n\r\n`
const PART_END = `\r\n--${BOUNDARY}--\r\n`

/** Runs one job inside a load client. */
export class JobRunner {
  readonly #job: Job
  readonly #onConnected: () => void
  readonly #connections: Connection[] = []
  readonly #timings: Timing[] = []
  readonly #failures: string[] = []
  readonly #stopped = new AbortController()
  readonly #host: string
  #sent = 0
  #startedAt = 0
  #endedAt = 0

  constructor(job: Job, onConnected: () => void) {
    this.#job = job
    this.#host = new URL(job.origin).host
    this.#onConnected = onConnected
  }

  async run(): Promise<Report> {
    const { origin, connections, readBytesPerSecondMax } = this.#job
    for (let index = 0; index < connections; index++)
      this.#connections.push(await Connection.open(origin, { readBytesPerSecondMax }))
    this.#onConnected()
    this.#startedAt = performance.now()
    await (this.#job.idle === true
      ? this.#untilStopped()
      : Promise.all(this.#connections.map((connection) => this.#useConnection(connection))))
    for (const connection of this.#connections) connection.close()
    return {
      seconds: (this.#endedAt - this.#startedAt) / 1_000,
      bytes: this.#timings.reduce((sum, { bytes }) => sum + bytes, 0),
      timings: this.#timings,
      failures: this.#failures,
    }
  }

  stop(): void {
    this.#stopped.abort()
    for (const connection of this.#connections) connection.close()
  }

  async #untilStopped(): Promise<void> {
    const { signal } = this.#stopped
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve))
  }

  async #useConnection(connection: Connection): Promise<void> {
    const { signal } = this.#stopped
    for (let exchange = this.#next(); exchange !== undefined; exchange = this.#next()) {
      try {
        this.#timings.push(await perform(connection, exchange, this.#host))
      } catch (error) {
        if (!signal.aborted) this.#failures.push(`${exchange.method} ${exchange.path}: ${String(error)}`)
        return
      } finally {
        this.#endedAt = performance.now()
      }
      if (this.#job.intervalMs !== undefined)
        await delay(this.#job.intervalMs, undefined, { signal }).catch(() => undefined)
    }
  }

  #next(): Exchange | undefined {
    const { exchanges, total = exchanges.length, durationMs = Infinity } = this.#job
    if (this.#stopped.signal.aborted || this.#sent >= total) return undefined
    if (performance.now() - this.#startedAt >= durationMs) return undefined
    return exchanges[this.#sent++ % exchanges.length]
  }
}

async function perform(connection: Connection, exchange: Exchange, host: string): Promise<Timing> {
  const body = await bodyOf(exchange)
  const answer = await connection.exchange(headOf(exchange, body, host), body, exchange.method !== 'HEAD')
  const { status, bytes, firstByteMs, totalMs } = answer
  return { kind: exchange.kind ?? exchange.path, status, bytes, firstByteMs, totalMs }
}

async function bodyOf({ body, bodyFile, uploadFile }: Exchange): Promise<Uint8Array | undefined> {
  if (bodyFile !== undefined) return await readFile(bodyFile)
  if (uploadFile === undefined) return body === undefined ? undefined : Buffer.from(body)
  return Buffer.concat([Buffer.from(PART_START), await readFile(uploadFile), Buffer.from(PART_END)])
}

function headOf(
  { method, path, headers = {}, uploadFile }: Exchange,
  body: Uint8Array | undefined,
  host: string,
): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  if (body !== undefined) lines.push(`Content-Length: ${body.length}\r\n`)
  if (uploadFile !== undefined) lines.push(`Content-Type: multipart/form-data; boundary=${BOUNDARY}\r\n`)
  return `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\n${lines.join('')}\r\n`
}
