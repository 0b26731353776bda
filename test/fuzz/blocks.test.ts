import { test } from 'node:test'
import * as fc from 'fast-check'
import { FuzzedBlocks, fuzzedUploads } from './fuzzed-blocks.ts'

/** A failure prints its seed and path: with both in the environment it is replayed. */
const { STOWAGE_FUZZ_SEED, STOWAGE_FUZZ_PATH, STOWAGE_FUZZ_SECONDS = '10' } = process.env
/** In-process requests are fast: a third of the time of the others tries as many. */
const timeMs = (Number(STOWAGE_FUZZ_SECONDS) * 1_000) / 3
const seed = STOWAGE_FUZZ_SEED === undefined ? Date.now() & 0x7fff_ffff : Number(STOWAGE_FUZZ_SEED)

test('changed ready blocks are stored as their bytes say, or refused as 400 or 413', async (t) => {
  t.diagnostic(`STOWAGE_FUZZ_SEED=${seed}`)
  const server = new FuzzedBlocks()
  let uploads = 0
  const property = fc.asyncProperty(fuzzedUploads, async (upload) => {
    uploads += 1
    await server.upload(upload)
  })
  const path = STOWAGE_FUZZ_PATH === undefined ? {} : { path: STOWAGE_FUZZ_PATH }
  await fc.assert(property, { seed, ...path, interruptAfterTimeLimit: timeMs, numRuns: 1_000_000 })
  await server.holds()
  t.diagnostic(`${uploads} uploads, of which ${server.accepted} were accepted`)
})
