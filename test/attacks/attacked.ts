import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import type { AttackedSettings, Load } from './settings.ts'
import { testProcess } from '../support/child-process.ts'
import { temporaryFolder } from '../support/folder.ts'

export interface AttackedServer {
  readonly port: number
  readonly url: string
  /** The most that the process had in memory since `forgetPeak`, as the system counts it. */
  peakBytes(): Promise<number>
  forgetPeak(): Promise<void>
  /** What it has in memory now, counted the same way. */
  residentBytes(): Promise<number>
  /** All that it has written since it began, to sockets for the most part. */
  writtenBytes(): Promise<number>
  load(): Promise<Load>
  /** The same after what nobody holds any more was collected. */
  collected(): Promise<Load>
  /** Fails if the process has ended, or said anything. */
  assertAlive(): void
}

export interface AttackedOptions extends Omit<AttackedSettings, 'path'> {
  /** The heap of the process. */
  readonly heapMb: number
}

/**
 * A server in a process of its own with a small heap, over a data folder that is gone with the test. It is watched from
 * outside (Linux).
 */
export async function attackedServer(t: TestContext, { heapMb, ...rest }: AttackedOptions): Promise<AttackedServer> {
  const path = temporaryFolder(t)
  const settings: AttackedSettings = { path, ...rest }
  const { child, said, next, ask } = testProcess(t, new URL('server.ts', import.meta.url), settings, {
    execArgv: [`--max-old-space-size=${heapMb}`, '--expose-gc'],
  })
  const { port } = await next<{ readonly port: number }>()
  const proc = `/proc/${child.pid}`
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    peakBytes: () => statusBytes(proc, 'VmHWM'),
    residentBytes: () => statusBytes(proc, 'VmRSS'),
    forgetPeak: () => writeFile(`${proc}/clear_refs`, '5'),
    writtenBytes: async () => Number(/^wchar: (\d+)$/m.exec(await readFile(`${proc}/io`, 'utf8'))?.[1]),
    load: () => ask('load'),
    collected: () => ask('collect'),
    assertAlive: () => {
      assert.equal(child.exitCode ?? child.signalCode, null, said())
      assert.equal(said(), '')
    },
  }
}

async function statusBytes(proc: string, name: 'VmHWM' | 'VmRSS'): Promise<number> {
  const [, kilobytes] = new RegExp(`${name}:\\s+(\\d+) kB`).exec(await readFile(`${proc}/status`, 'utf8')) ?? []
  return Number(kilobytes) * 1_024
}

/** A connection on which bytes are written by hand. */
export interface RawClient {
  readonly socket: Socket
  /** What came so far, the first kilobytes of it. */
  got(): string
  /** The status of the answer, once there is one. */
  status(): Promise<number>
  /** Writes and waits until the system has taken it; also when the server reads no more, and then closes. */
  write(bytes: string | Uint8Array): Promise<void>
}

const GOT_MAX = 16_384

export async function rawClient(port: number, localAddress = '127.0.0.1'): Promise<RawClient> {
  const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => undefined)
  await once(socket, 'connect')
  let got = ''
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  socket.setEncoding('latin1').on('data', (text: string) => {
    if (got.length < GOT_MAX) got += text
  })
  const status = (): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(got)?.[1] ?? Number.NaN)
  return {
    socket,
    got: () => got,
    status: async () => {
      while (Number.isNaN(status()) && !socket.destroyed)
        await Promise.race([new Promise((resolve) => socket.once('data', resolve)), closed])
      return status()
    },
    write: (bytes) =>
      new Promise((resolve) => {
        void closed.then(() => resolve())
        socket.write(bytes, () => resolve())
      }),
  }
}

/** The head of a request of a name. */
export function head(
  method: string,
  path: string,
  name: string,
  headers: Readonly<Record<string, string | number>>,
): string {
  const lines = Object.entries(headers).map(([key, value]) => `${key}: ${value}\r\n`)
  return `${method} ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${name}\r\n${lines.join('')}\r\n`
}
