import { test } from 'node:test'
import { FuzzedServer } from '../openapi/fuzz.ts'

/**
 * Minutes of what `test/openapi/fuzz.test.ts` does for seconds. A failure prints its seed and path: with both in the
 * environment it is replayed.
 */
const { STOWAGE_FUZZ_SEED, STOWAGE_FUZZ_PATH, STOWAGE_FUZZ_SECONDS = '10' } = process.env
const timeMs = Number(STOWAGE_FUZZ_SECONDS) * 1_000
const seed = STOWAGE_FUZZ_SEED === undefined ? Date.now() & 0x7fff_ffff : Number(STOWAGE_FUZZ_SEED)
const options = { effort: { timeMs }, seed, ...(STOWAGE_FUZZ_PATH === undefined ? {} : { path: STOWAGE_FUZZ_PATH }) }

const PROPERTIES = ['valid', 'hostile', 'broken'] as const

for (const property of PROPERTIES) {
  test(`${property} requests for ${STOWAGE_FUZZ_SECONDS} s`, async (t) => {
    t.diagnostic(`STOWAGE_FUZZ_SEED=${seed}`)
    const server = await FuzzedServer.start(t, options)
    t.diagnostic(`${await server[property]()} requests`)
    await server.stillServes()
  })
}
