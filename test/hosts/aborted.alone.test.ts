import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { openService } from '../http/served.ts'
import { WatchedStore } from '../http/watched-store.ts'
import { HOSTS, listen } from '../mounts/hosts.ts'

const AT_ONCE = 25
const WARM_ROUNDS = 4
const ROUNDS = 8
const GROWTH_BYTES_MAX = 6_000_000
const SENT = Buffer.concat([
  Buffer.from('POST /models/objects/p HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n[{"id":"a","text":"'),
  Buffer.alloc(64_000, 'x'),
])

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

async function abortUploads(port: number): Promise<void> {
  const sockets = Array.from({ length: AT_ONCE }, () => connect(port, '127.0.0.1').on('error', () => undefined))
  await Promise.all(sockets.map(async (socket, n) => {
    await once(socket, 'connect')
    // Some go before all was sent, some after.
    await new Promise((resolve) => (socket.write(SENT, resolve), n % 2 === 0 && resolve(undefined)))
    const closed = once(socket, 'close')
    socket.destroy()
    await closed
  }))
}

async function heldBytes(): Promise<number> {
  for (let round = 0; round < 3; round++) {
    await new Promise((resolve) => setTimeout(resolve, 20))
    collectGarbage()
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

for (const host of HOSTS) {
  void test(`${host.name}: many aborted uploads leave no memory behind`, async (t) => {
    const store = new WatchedStore()
    const service = openService({ store })
    const port = await listen(t, await host.open(service, '/models'), service)
    for (let round = 0; round < WARM_ROUNDS; round++) await abortUploads(port)
    const before = await heldBytes()
    for (let round = 0; round < ROUNDS; round++) await abortUploads(port)
    const grown = (await heldBytes()) - before
    t.diagnostic(`${ROUNDS * AT_ONCE} aborted uploads: ${grown} bytes`)
    assert.ok(grown < GROWTH_BYTES_MAX, `${grown} bytes more are held after ${ROUNDS * AT_ONCE} aborted uploads of ${SENT.length} bytes each`)
    const startedAtMs = performance.now()
    await service.close({ graceMs: 20_000 })
    assert.ok(performance.now() - startedAtMs < 5_000, 'something is still under way')
    assert.equal(store.puts, 0)
  })
}
