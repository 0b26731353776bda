import { test } from 'node:test'
import { FuzzedServer } from './fuzz.ts'

const TIME_MS = 500

test('requests made from the document, right and wrong ones, get answers as it describes them', async (t) => {
  const seed = Date.now() & 0x7fff_ffff
  t.diagnostic(`npm run test:fuzz with STOWAGE_FUZZ_SEED=${seed} tries these and more`)
  const server = await FuzzedServer.start(t, { timeMs: TIME_MS, seed })
  await server.valid()
  await server.hostile()
  await server.broken()
  await server.stillServes()
})
