import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Access, CommonServiceOptions } from '../../src/index.ts'
import { errorOf, openService } from '../http/served.ts'

type Ask = (headers: Record<string, string>) => Promise<Response>

function limited(rate: CommonServiceOptions<unknown>['requestRate'], clock: { now: () => number }): Ask {
  const access: Access<unknown> = {
    authenticate: ({ headers }) =>
      headers.get('x-none') === null
        ? { subject: headers.get('x-account') ?? '', tokenId: headers.get('x-token') ?? '' }
        : undefined,
    authorize: () => true,
  }
  const service = openService({ access, clock, ...(rate === undefined ? {} : { requestRate: rate }) })
  return (headers) => service.fetch(new Request('http://in.process/objects/p/none', { headers }))
}

const ada = { 'x-account': 'ada' }

test('each account may send a burst, and then a fixed number of requests a second', async () => {
  const clock = { nowMs: 1_000_000, now: (): number => clock.nowMs }
  const ask = limited({ requestsPerSecond: 2, burst: 3 }, clock)
  const statuses = async (headers: Record<string, string>, count: number): Promise<number[]> => {
    const all: number[] = []
    for (let n = 0; n < count; n++) all.push((await ask(headers)).status)
    return all
  }
  assert.deepEqual(await statuses(ada, 5), [404, 404, 404, 429, 429])
  assert.deepEqual(await statuses({ ...ada, 'x-token': 'another' }, 1), [429], 'another token of the same account')
  assert.deepEqual(await statuses({ 'x-token': 'one' }, 4), [404, 404, 404, 429])
  assert.deepEqual(await statuses({ 'x-token': 'two' }, 1), [404])
  clock.nowMs += 500
  assert.deepEqual(await statuses(ada, 2), [404, 429])
  clock.nowMs -= 60_000
  assert.deepEqual(await statuses(ada, 1), [429], 'a clock that was set back gives nothing')
  clock.nowMs += 3_600_000
  assert.deepEqual(await statuses(ada, 4), [404, 404, 404, 429])
})

test('a 429 has the common error shape, and Retry-After in whole seconds', async () => {
  const ask = limited({ requestsPerSecond: 0.3, burst: 1 }, { now: () => 0 })
  await ask(ada)
  const refused = await ask(ada)
  assert.equal(refused.headers.get('retry-after'), '4')
  assert.deepEqual(await errorOf(refused), {
    status: 429,
    code: 'too_many_requests',
    message: 'this account exceeds its request rate; try again in 4 s',
  })
  assert.equal((await ask({ 'x-none': '1' })).status, 401)
})

test('the rate is unlimited by default, and a rate that allows nothing is refused', async () => {
  const ask = limited(undefined, { now: () => 0 })
  for (let n = 0; n < 200; n++) assert.equal((await ask(ada)).status, 404)
  for (const rate of [{ requestsPerSecond: 0 }, { requestsPerSecond: Infinity }, { requestsPerSecond: 1, burst: 0.5 }])
    assert.throws(() => limited(rate, { now: () => 0 }), RangeError)
})
