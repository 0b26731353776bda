import { test } from 'node:test'
import { mkdtemp } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { KillableServer } from './kill-rounds.ts'
import { Load } from './load.ts'
test('x', async (t) => {
  const s = new KillableServer(await mkdtemp('/tmp/ringload-'), 4e6)
  await s.start()
  const load = new Load(s.url, 'house', 32)
  load.failure().catch((e) => { console.log('FAILED', e) })
  const t0 = performance.now()
  const say = (x: unknown) => console.log(Math.round(performance.now() - t0), load.steps, x)
  await sleep(3000)
  for (let i = 0; i < 4; i++) {
    for (let e = 0; e < 2; e++) {
    say(await s.call('advanceEpochs', 1))
    await load.settled()
    say('settled') }
    const c = (await s.call('collect', 'house'))
    say([c.condemned.objects, c.freed.objects, c.held.objects])
    say(await s.call('compact', 'house', {processorShare: 1}))
    say(await s.call('memory'))
  }
  await load.stop()
  await s.kill()
})
