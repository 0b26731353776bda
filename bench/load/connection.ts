import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import { connect as connectTls } from 'node:tls'
import { type CountedResponse, ResponseCounter } from './response-counter.ts'

export interface ConnectionOptions {
  readonly readBytesPerSecondMax?: number | undefined
}

/** The answer to one request; times are in milliseconds since it was sent. */
export interface Answer extends CountedResponse {
  readonly firstByteMs: number
  readonly totalMs: number
}

const READ_BYTES = 1_048_576
const SLOW_READ_BYTES = 16_384

interface Waiting {
  readonly counter: ResponseCounter
  readonly sentAt: number
  firstByteAt: number
  resolve(answer: Answer): void
  reject(reason: Error): void
}

/**
 * One kept connection of HTTP/1.1 with one request at a time. It reads into one buffer that is used again and again, and
 * keeps nothing of what it reads.
 */
export class Connection {
  readonly #socket: Socket
  #waiting: Waiting | undefined
  #error: Error | undefined

  constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('error', (error) => this.#fail(error))
    socket.on('close', () => this.#fail(new Error('the server closed the connection')))
  }

  static async open(origin: string, { readBytesPerSecondMax }: ConnectionOptions = {}): Promise<Connection> {
    const { protocol, hostname, port } = new URL(origin)
    let opened: Connection | undefined
    if (protocol === 'https:') {
      const socket = connectTls({ host: hostname, port: Number(port || 443), servername: hostname })
      await once(socket, 'secureConnect')
      opened = new Connection(socket)
      socket.on('data', (bytes: Buffer) => opened?.read(bytes))
      return opened
    }
    const socket = connect({
      host: hostname,
      port: Number(port || 80),
      onread: {
        buffer: Buffer.allocUnsafeSlow(readBytesPerSecondMax === undefined ? READ_BYTES : SLOW_READ_BYTES),
        callback: (length: number, buffer: Uint8Array) => {
          opened?.read(Buffer.from(buffer.buffer, buffer.byteOffset, length))
          if (readBytesPerSecondMax !== undefined) opened?.rest((length / readBytesPerSecondMax) * 1_000)
          return true
        },
      },
    })
    await once(socket, 'connect')
    opened = new Connection(socket)
    return opened
  }

  /** Sends a request, whole, and resolves at the end of its answer. */
  async exchange(head: string, body: Uint8Array | undefined, hasAnswerBody: boolean): Promise<Answer> {
    if (this.#error !== undefined) throw this.#error
    const answered = new Promise<Answer>((resolve, reject) => {
      this.#waiting = {
        counter: new ResponseCounter(hasAnswerBody),
        sentAt: performance.now(),
        firstByteAt: 0,
        resolve,
        reject,
      }
    })
    if (body === undefined) this.#socket.write(head, 'latin1')
    else {
      this.#socket.cork()
      this.#socket.write(head, 'latin1')
      this.#socket.write(body)
      this.#socket.uncork()
    }
    return await answered
  }

  close(): void {
    this.#socket.destroy()
  }

  read(bytes: Buffer): void {
    const waiting = this.#waiting
    if (waiting === undefined) return
    if (waiting.firstByteAt === 0) waiting.firstByteAt = performance.now()
    try {
      const response = waiting.counter.push(bytes)
      if (response === undefined) return
      this.#waiting = undefined
      waiting.resolve({
        ...response,
        firstByteMs: waiting.firstByteAt - waiting.sentAt,
        totalMs: performance.now() - waiting.sentAt,
      })
    } catch (error) {
      this.#fail(error as Error)
      this.#socket.destroy()
    }
  }

  /** Reads nothing for a while: the reader of a slow line. */
  rest(restMs: number): void {
    this.#socket.pause()
    setTimeout(() => this.#socket.resume(), restMs).unref()
  }

  #fail(error: Error): void {
    this.#error ??= error
    this.#waiting?.reject(this.#error)
    this.#waiting = undefined
  }
}
