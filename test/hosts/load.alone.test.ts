import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { MB } from '../../src/limits.ts'
import { jsonUpload } from '../http/served.ts'
import { HOSTS } from '../mounts/hosts.ts'
import { loadFor } from './load.ts'
import { hostProcess, type HostProcess, PREFIX } from './process.ts'

/* Cases 19, 20 and 27 through every mount, each in a process of its own, whose memory is measured from here. `npm run soak` makes the times longer. */

const LOAD_MS = Number(process.env.STOWAGE_LOAD_SECONDS ?? 1) * 1_000
const ABORTED = Number(process.env.STOWAGE_ABORTED_UPLOADS ?? 500)
const ABORTED_AT_ONCE = 25
const WARM_ABORTED = 300
const ABORTED_GROWTH_BYTES_MAX = 8_000_000
/** Of each kind and each host, all of them at once: 500, or as many as this process may have open files for. */
const SLOW_CLIENTS = Math.min(500, Math.floor((openFilesMax() - 200) / (2.1 * HOSTS.length)))
const SLOW_READERS = Math.ceil(SLOW_CLIENTS / 10)
const SLOW_GROWTH_BYTES_MAX = 64 * MB
const STALL_TIMEOUT_MS = 3_000
const HEADERS_TIMEOUT_MS = 2_000
/** Node looks for headers that are late every 30 s; what is never cut off takes longer. */
const CLOSED_WITHIN_MS = 150_000
/**
 * A third more than 400 MB, since V8 lets 64 MB of garbage outside the heap come together, and each core has a thread
 * that compresses.
 */
const LOAD_MEMORY_BYTES_MAX = 600 * MB
/** When all is over and garbage was collected: caches, and no more than that. */
const LOAD_HELD_BYTES_MAX = 128 * MB
/** 100 ms, with the slack of three times that times have in tests. */
const LOOP_P99_MS_MAX = 300

const head = (method: string, path: string, headers: string): string =>
  `${method} ${PREFIX}${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`
const UPLOAD_HEAD = head('POST', '/objects/p', 'Content-Type: application/json\r\nContent-Length: 1000000\r\n')
const SENT = Buffer.from(`${UPLOAD_HEAD}[{"id":"a","text":"${'x'.repeat(64_000)}`)

function openFilesMax(): number {
  const { userLimits } = process.report.getReport() as {
    readonly userLimits?: { readonly open_files?: { readonly soft?: number | 'unlimited' } }
  }
  return Number(userLimits?.open_files?.soft ?? Infinity) || Infinity
}

async function connected(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined)
  await once(socket, 'connect')
  return socket
}

async function abortUploads(port: number, count: number): Promise<void> {
  for (let done = 0; done < count; done += ABORTED_AT_ONCE) {
    await Promise.all(
      Array.from({ length: ABORTED_AT_ONCE }, async (_, n) => {
        const socket = await connected(port)
        // Some go before all was sent, some after.
        await new Promise((resolve) => (socket.write(SENT, resolve), n % 2 === 0 && resolve(undefined)))
        const closed = once(socket, 'close')
        socket.destroy()
        await closed
      }),
    )
  }
}

for (const { name } of HOSTS) {
  test(`case 20: ${name}: ${ABORTED} aborted uploads leave no memory and nothing in flight`, async (t) => {
    const host = await hostProcess(t, name)
    await abortUploads(host.port, WARM_ABORTED)
    const before = await host.holdings()
    await abortUploads(host.port, ABORTED)
    const after = await host.holdings()
    t.diagnostic(`${after.heldBytes - before.heldBytes} bytes`)
    assert.ok(
      after.heldBytes - before.heldBytes < ABORTED_GROWTH_BYTES_MAX,
      `${after.heldBytes - before.heldBytes} bytes more are held`,
    )
    assert.equal((await fetch(`${host.url}/objects/p/a`)).status, 404)
    await host.end()
  })
}

interface SlowExchange {
  readonly sends: string
  readonly answer: RegExp
  readonly clients: number
}

/** Each of these stops before its request, or its answer, is complete. */
const SLOW: Readonly<Record<'slow headers' | 'slow body' | 'slow reader', SlowExchange>> = {
  'slow headers': {
    sends: `GET ${PREFIX}/objects/p/o HTTP/1.1\r\nHost`,
    answer: /^(?:HTTP\/1\.1 408 [^]*)?$/,
    clients: SLOW_CLIENTS,
  },
  // Those for whom there is no memory are refused at once.
  'slow body': {
    sends: `${UPLOAD_HEAD}[{"id":"slow"`,
    answer: /^HTTP\/1\.1 (?:400 [^]*"code":"request_aborted"|503 [^]*"code":"overloaded")/,
    clients: SLOW_CLIENTS,
  },
  'slow reader': {
    sends: head('GET', '/objects/p/root', 'Accept: text/plain\r\nConnection: close\r\n'),
    answer: /^HTTP\/1\.1 200 /,
    clients: SLOW_READERS,
  },
}

async function areCutOff(host: HostProcess, kind: keyof typeof SLOW): Promise<void> {
  const { sends, answer, clients } = SLOW[kind]
  const ended = await Promise.all(
    Array.from({ length: clients }, async () => {
      const socket = await connected(host.port)
      let got = ''
      const closed = once(socket, 'close')
      // Of an answer that goes on, its beginning is enough.
      socket.on('data', (bytes: Buffer) => (got += got === '' ? bytes.toString('latin1', 0, 1_000) : ''))
      if (kind === 'slow reader') socket.pause()
      socket.write(sends)
      return { closed, got: () => got, socket }
    }),
  )
  // What the system buffered comes when it is read; the rest of it never does.
  if (kind === 'slow reader') setTimeout(() => ended.forEach(({ socket }) => socket.resume()), 2 * STALL_TIMEOUT_MS)
  const { status } = await fetch(`${host.url}/objects/p/o1/single`, { method: 'HEAD' })
  assert.equal(status, 200, 'others are served meanwhile')
  const startedAtMs = performance.now()
  await Promise.all(ended.map(async ({ closed }) => closed))
  assert.ok(performance.now() - startedAtMs < CLOSED_WITHIN_MS, kind)
  for (const { got } of ended) assert.match(got(), answer, kind)
}

test(
  `case 19: ${SLOW_CLIENTS} slow clients of each kind are cut off in time, through every mount`,
  { concurrency: HOSTS.length },
  async (t) => {
    await Promise.all(
      HOSTS.map(async ({ name, style }) =>
        t.test(name, async (t) => {
          const host = await hostProcess(t, name, {
            stallTimeoutMs: STALL_TIMEOUT_MS,
            headersTimeoutMs: HEADERS_TIMEOUT_MS,
          })
          const large = Array.from({ length: 24 }, (_, n) => ({ id: `o${n}`, text: 'x'.repeat(500_000) }))
          assert.equal(
            (
              await fetch(
                `${host.url}/objects/p`,
                jsonUpload([...large, { id: 'root', all: large.map(({ id }) => ({ referencedId: id })) }]),
              )
            ).status,
            200,
          )
          await (await fetch(`${host.url}/objects/p/root`)).arrayBuffer()
          const before = await host.holdings()
          await Promise.all([areCutOff(host, 'slow headers'), areCutOff(host, 'slow body')])
          await areCutOff(host, 'slow reader')
          const after = await host.holdings()
          t.diagnostic(`${after.heldBytes - before.heldBytes} bytes`)
          assert.ok(
            after.heldBytes - before.heldBytes < SLOW_GROWTH_BYTES_MAX,
            `${after.heldBytes - before.heldBytes} bytes more are held`,
          )
          // The server of Hono prints that an answer broke off.
          await host.end(style === 'fetch' ? /nothing was read for/ : undefined)
        }),
      ),
    )
  },
)

for (const { name } of HOSTS) {
  test(`case 27: ${name}: 32 uploads and 32 downloads run for ${LOAD_MS / 1_000} s in bounded memory, with a responsive event loop`, async (t) => {
    const host = await hostProcess(t, name)
    const load = await loadFor(host, LOAD_MS)
    const { heldBytes, rssBytesMax, loopP99Ms } = await host.holdings()
    const megabytes = [rssBytesMax, heldBytes].map((bytes) => `${(bytes / MB).toFixed(0)} MB`)
    t.diagnostic(
      `${load.uploads} uploads, ${load.downloads} downloads; ${megabytes[0]} at most, ${megabytes[1]} held afterwards; event loop p99 ${loopP99Ms.toFixed(0)} ms`,
    )
    assert.ok(load.uploads >= 32 && load.downloads >= 32, JSON.stringify(load))
    assert.ok(rssBytesMax < LOAD_MEMORY_BYTES_MAX, `${rssBytesMax} bytes at most`)
    assert.ok(heldBytes < LOAD_HELD_BYTES_MAX, `${heldBytes} bytes are held afterwards`)
    assert.ok(loopP99Ms < LOOP_P99_MS_MAX, `event loop p99 ${loopP99Ms} ms`)
    await host.end()
  })
}
