import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  ASKINGS,
  type Asking,
  type Folder,
  folderWithLargeGraph,
  type Memory,
  SlowReadersServer,
  SMALL,
} from './slow-readers.ts'

const READERS = 500
const MB = 1_048_576
/** A list of 3,000 ids is looked up before its answer begins, and leases more than a graph. Measured: 8 to 283. */
const LISTS_REFUSED_MAX = 400
/** Measured: 31 to 138 MB. Before answers shared their memory it was 2 to 7 MB for each reader. */
const BUFFERS_BYTES_MAX = 192 * MB
/** Measured: 63 to 207 MB. What the allocator keeps between buffers, and the objects of 500 requests, come on top. */
const RSS_OVER_CONTROL_BYTES_MAX = 320 * MB

async function growth(
  folder: Folder,
  asking: Asking,
  begin: (server: SlowReadersServer) => Promise<number>,
): Promise<Memory & { readonly refused: number }> {
  const server = await SlowReadersServer.start(folder)
  try {
    await server.beginOverSockets(2, asking)
    const before = await server.memory()
    const refused = await begin(server)
    const after = await server.memory()
    return {
      rssBytes: after.rssBytes - before.rssBytes,
      buffersBytes: after.buffersBytes - before.buffersBytes,
      refused,
    }
  } finally {
    await server.stop()
  }
}

test('case 19: 500 concurrent slow readers of every kind of download, over sockets and in process', async (t) => {
  const folder = await folderWithLargeGraph()
  t.after(() => folder.remove())
  const control = await growth(folder, SMALL, (server) => server.beginOverSockets(READERS, SMALL))
  for (const [name, asking] of Object.entries(ASKINGS)) {
    for (const [way, begin] of [
      ['over sockets', (server: SlowReadersServer) => server.beginOverSockets(READERS, asking)],
      ['in process', (server: SlowReadersServer) => server.beginInProcess(READERS, asking)],
    ] as const) {
      const { rssBytes, buffersBytes, refused } = await growth(folder, asking, begin)
      t.diagnostic(
        `${name}, ${way}: buffers +${Math.round(buffersBytes / MB)} MB, process +${Math.round((rssBytes - control.rssBytes) / MB)} MB over the control, ${refused} refused`,
      )
      assert.ok(refused <= (name.startsWith('list') ? LISTS_REFUSED_MAX : 0), `${name}, ${way}: ${refused} refused`)
      assert.ok(buffersBytes < BUFFERS_BYTES_MAX, `${name}, ${way}: ${buffersBytes} bytes in buffers`)
      assert.ok(
        rssBytes - control.rssBytes < RSS_OVER_CONTROL_BYTES_MAX,
        `${name}, ${way}: ${rssBytes} bytes, the control ${control.rssBytes}`,
      )
    }
  }
})
