import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { createObjectService, openAccess } from '../../src/index.ts'

const OBJECTS = 6_000
const TEXT_BYTES = 3_000
const STATUS_LINE_BYTES = 13
const STATUS_LINE = /^HTTP\/1\.1 (?:200|503) $/

export interface Folder {
  readonly path: string
  remove(): void
}

/**
 * A data folder with the project `p`: a graph of 24 MB that gzip makes little smaller, below `large`, and a root of its
 * own, `small`.
 */
export async function folderWithLargeGraph(): Promise<Folder> {
  const folder = mkdtempSync(join(tmpdir(), 'stowage-slow-'))
  const service = createObjectService({
    backend: filesystemBackend({ path: join(folder, 'data') }),
    access: openAccess(),
  })
  const project = service.project('p')
  const objects = Array.from({ length: OBJECTS }, (_, n) => ({
    id: `object-${n}`,
    data: randomBytes(TEXT_BYTES).toString('base64'),
  }))
  const root = { id: 'large', parts: objects.map(({ id }) => ({ referencedId: id })) }
  for (const some of [objects.slice(0, OBJECTS / 2), [...objects.slice(OBJECTS / 2), root], [{ id: 'small' }]]) {
    await project.upload(oneChunk(some), 'application/json')
  }
  // A download makes the plan, which is kept.
  for await (const _ of project.graph('large'));
  await service.close()
  return { path: join(folder, 'data'), remove: () => rmSync(folder, { recursive: true, force: true }) }
}

async function* oneChunk(objects: readonly unknown[]): AsyncGenerator<Uint8Array> {
  yield Buffer.from(JSON.stringify(objects))
}

export interface Asking {
  readonly path: string
  readonly init: { readonly method: string; readonly headers: Readonly<Record<string, string>>; readonly body?: string }
}

/** Every way in which many objects leave. */
export const ASKINGS: Readonly<Record<string, Asking>> = {
  'graph, text, gzip': graph('large', 'text/plain', 'gzip'),
  'graph, text': graph('large', 'text/plain', 'identity'),
  'graph, JSON': graph('large', 'application/json', 'identity'),
  'graph, JSON, gzip': graph('large', 'application/json', 'gzip'),
  'list, text, gzip': list('text/plain', 'gzip'),
  'list, text': list('text/plain', 'identity'),
  'list, JSON, gzip': list('application/json', 'gzip'),
}

export const SMALL: Asking = graph('small', 'text/plain', 'gzip')

function graph(root: string, accept: string, coding: string): Asking {
  return { path: `/objects/p/${root}`, init: { method: 'GET', headers: { accept, 'accept-encoding': coding } } }
}

/** Every other object: nothing of it is stored as it is sent. */
function list(accept: string, coding: string): Asking {
  const ids = Array.from({ length: OBJECTS / 2 }, (_, n) => `object-${2 * n}`)
  const headers = { accept, 'accept-encoding': coding, 'content-type': 'application/json' }
  return { path: '/api/getobjects/p', init: { method: 'POST', headers, body: JSON.stringify({ objects: ids }) } }
}

export interface Memory {
  readonly rssBytes: number
  readonly buffersBytes: number
}

/** A server in a process of its own. */
export class SlowReadersServer {
  readonly #child: ChildProcess
  readonly #port: number
  readonly #sockets: Socket[] = []

  private constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.#port = port
  }

  static async start(folder: Folder): Promise<SlowReadersServer> {
    const child = fork(fileURLToPath(new URL('./slow-readers-server.ts', import.meta.url)), [folder.path], {
      execArgv: [...process.execArgv, '--expose-gc'],
    })
    const [port] = (await once(child, 'message')) as [number]
    return new SlowReadersServer(child, port)
  }

  async memory(): Promise<Memory> {
    return (await this.#told('memory')) as Memory
  }

  /** So many connections that each begin to read an answer, and stop. Resolves to how many were refused for lack of memory. */
  async beginOverSockets(count: number, { path, init }: Asking): Promise<number> {
    const { method, headers, body = '' } = init
    const lines = Object.entries({ host: 'x', ...headers, 'content-length': String(body.length) }).map(
      ([name, value]) => `${name}: ${value}\r\n`,
    )
    const request = `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`
    let refused = 0
    for (let begun = 0; begun < count; begun += 25) {
      const some = Array.from({ length: Math.min(25, count - begun) }, () => this.#beginOne(request))
      refused += (await Promise.all(some)).filter((isRefused) => isRefused).length
    }
    return refused
  }

  /** The same without connections. */
  async beginInProcess(count: number, asking: Asking): Promise<number> {
    return (await this.#told({ count, ...asking })) as number
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    this.#child.kill('SIGKILL')
    await once(this.#child, 'exit')
  }

  async #beginOne(request: string): Promise<boolean> {
    const socket = connect(this.#port, '127.0.0.1')
    this.#sockets.push(socket)
    socket.on('error', () => undefined)
    socket.write(request)
    await once(socket, 'readable')
    const statusLine = String(socket.read(STATUS_LINE_BYTES))
    if (!STATUS_LINE.test(statusLine)) throw new Error(`answered ${statusLine}`)
    return statusLine.includes('503')
  }

  async #told(message: object | string): Promise<unknown> {
    this.#child.send(message)
    const [answer] = (await once(this.#child, 'message')) as [unknown]
    return answer
  }
}
