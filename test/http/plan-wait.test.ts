import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { type Environment, REAL_ENVIRONMENT } from '../../src/environment.ts'
import { createObjectService, openAccess } from '../../src/index.ts'
import { hooked, sharing } from '../store/failures.ts'
import { eventually, turns } from '../support/patience.ts'
import { jsonUpload } from './served.ts'

/** Above the shortest wait for a plan and below the longest. */
const PASSED_MS = 400
const WAIT_MS = { min: 50, max: 500 }
const PARTS = Array.from({ length: 200 }, (_, n) => ({ id: `${n}`, data: randomBytes(600).toString('base64') }))
/** Every other object, so that the plan has to read the blocks and to cut them. */
const WANTED = PARTS.filter((_, n) => n % 2 === 0).map(({ id }) => ({ referencedId: id }))
const OBJECTS: readonly object[] = [{ id: 'root', parts: WANTED }, ...PARTS]

for (const [what, headers, status] of [
  ['a range waits for a plan that takes a while', { Range: 'bytes=0-9' }, 206],
  ['a whole answer does not', {}, 200],
] as const)
  test(`on a server that has no plan yet, ${what}`, async (t) => {
    const kept = memoryBackend()
    const first = createObjectService({ backend: sharing(kept), access: openAccess() })
    await (await first.fetch(new Request('http://x/objects/p', jsonUpload(OBJECTS)))).text()
    await first.close()
    const timers: { readonly delayMs: number; readonly act: () => void }[] = []
    let release: () => void = () => undefined
    const released = new Promise<void>((resolve) => (release = resolve))
    let isMaking = false
    // The walk reads, too, before anything waits for the plan.
    const backend = hooked(kept, async (call, _name, work) => {
      if (call === 'read' && timers.length > 0) {
        isMaking = true
        await released
      }
      return work()
    })
    const environment: Environment = {
      ...REAL_ENVIRONMENT,
      setTimer: (delayMs, act) => {
        if (delayMs < WAIT_MS.min || delayMs > WAIT_MS.max) return REAL_ENVIRONMENT.setTimer(delayMs, act)
        timers.push({ delayMs, act })
        return REAL_ENVIRONMENT.setTimer(2 * 3_600_000, act).unref()
      },
    }
    const service = createObjectService({ backend, access: openAccess(), environment })
    t.after(() => service.close({ graceMs: 0 }))
    const answering = service.fetch(new Request('http://x/objects/p/root', { headers }))
    await eventually(() => isMaking, 'the plan is being made')
    for (const { act } of timers.filter(({ delayMs }) => delayMs <= PASSED_MS)) act()
    await turns()
    release()
    const answer = await answering
    assert.equal(answer.status, status)
    assert.equal(answer.headers.has('etag'), status === 206)
    await answer.arrayBuffer()
  })
