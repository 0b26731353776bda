import { test } from 'node:test'
import { FuzzedServer } from './fuzz.ts'

/** Few, however slow the machine is: the rest is for `npm run test:fuzz`. */
const REQUESTS = 25

test('generated requests, valid and invalid, get documented responses', async (t) => {
  const seed = Date.now() & 0x7fff_ffff
  t.diagnostic(`npm run test:fuzz with STOWAGE_FUZZ_SEED=${seed} tries these and more`)
  const server = await FuzzedServer.start(t, { effort: { requests: REQUESTS }, seed })
  await server.valid()
  await server.hostile()
  await server.broken()
  await server.stillServes()
})
