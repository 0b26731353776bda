import { createClient } from '../../src/client/index.ts'

/** Uploads 50,000 objects and their root, downloads them, and prints what it took. To be started with little memory. */

const COUNT = 50_000
const TEXT = Array.from({ length: 2_000 }, (_, n) => (n * 7_919).toString(36)).join(' ')

const LOOK_MS = 250

let buffersMb = 0
/**
 * What is garbage does not count: V8 lets 64 MB of it outside the heap come together before it collects any. What one
 * collection found dead is given back by another thread; the second one waits for that.
 */
const timer = setInterval(() => {
  globalThis.gc?.()
  globalThis.gc?.()
  buffersMb = Math.max(buffersMb, process.memoryUsage().arrayBuffers / 1_048_576)
}, LOOK_MS)
const project = createClient({ url: process.argv[2], token: undefined }).project('demo')
const { sent, jsonBytes } = await project.upload(objects(), { sendAll: true })
let received = 0
for await (const batch of project.graph('root')) received += batch.length
clearInterval(timer)
process.stdout.write(JSON.stringify({ sent, jsonBytes, received, buffersMb: Math.round(buffersMb) }))

function* objects(): Generator<object> {
  for (let n = 0; n < COUNT; n++) yield { id: `object-${n}`, text: TEXT.slice(n % 5_000, (n % 5_000) + 1_200) }
  yield {
    id: 'root',
    at: Array.from({ length: COUNT }, (_, n) => ({ speckle_type: 'reference', referencedId: `object-${n}` })),
  }
}
