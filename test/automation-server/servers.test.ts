import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import type { RunStart } from '../../src/automation-server/index.ts'
import type { StorageBackend } from '../../src/index.ts'
import { hooked, sharing } from '../store/failures.ts'
import { TimeByHand } from '../store/time.ts'
import { eventually, turns } from '../support/patience.ts'
import { automated, definition, type Fixture, heldRun, inProcess, withAutomation, withVersion } from './support.ts'

/* Several services with automation over one backend, without a word between them. */

const LEASE_MS = 60_000
const CLOCK_DIFFERENCE_MS = 300_000

interface Gate {
  readonly backend: StorageBackend
  /** From now on calls wait, as those of a process that was stopped do, until `resume`. */
  stop(): void
  resume(): void
}

function stoppable(inner: StorageBackend): Gate {
  let resume: () => void = () => undefined
  let running = Promise.resolve()
  const backend = hooked(inner, async (_call, _detail, work) => {
    await running
    return work()
  })
  const stop = (): void => {
    running = new Promise((resolve) => {
      resume = resolve
    })
  }
  return { backend, stop, resume: () => resume() }
}

/** A server that runs one function until it is stopped. */
async function runningOn(
  t: TestContext,
  backend: StorageBackend,
  options: Parameters<typeof automated>[1] = {},
): Promise<Fixture & { readonly runId: string; readonly start: RunStart; readonly reasons: readonly string[] }> {
  const { executor, starting } = heldRun()
  const reasons: string[] = []
  const noting = inProcess(async (start, stopped) => {
    const handle = executor.start(start)
    const reason = await stopped
    reasons.push(reason)
    handle.cancel(reason)
  })
  const fixture = automated(t, { backend, functions: [definition(noting)], ...options })
  const { project, automation } = await withAutomation(fixture)
  const { id: runId } = await project.runs.start(automation.id)
  return { ...fixture, runId, start: await starting, reasons }
}

test('a run that is canceled on another server is told to stop, long before its lease is renewed', async (t) => {
  const backend = memoryBackend()
  const { extension, runId, reasons } = await runningOn(t, sharing(backend), { leaseMs: 86_400_000 })
  // Its runner has looked at the run for the first time.
  await turns(50)
  const other = automated(t, { backend: sharing(backend) })
  await other.extension.project('p').runs.cancel(runId)
  await extension.idle()
  assert.deepEqual(reasons, ['canceled'])
})

test('pages of another server follow a run to its end', async (t) => {
  const backend = memoryBackend()
  const { runId, start } = await runningOn(t, sharing(backend))
  const other = automated(t, { backend: sharing(backend) })
  const address = `http://in.process/api/v1/projects/p/runs/${runId}/events`
  const pages = await Promise.all(Array.from({ length: 3 }, () => other.service.fetch(new Request(address))))
  const texts = pages.map((page) => page.text())
  await start.backend.report({ sequence: 1, status: 'running', progress: { fraction: 0.5, message: 'half' } })
  await start.backend.report({ sequence: 2, status: 'succeeded', message: 'done' })
  for (const text of await Promise.all(texts)) assert.match(text, /event: status\n.*data: .*"succeeded"/s)
})

for (const [what, differenceMs] of [
  ['ahead', CLOCK_DIFFERENCE_MS],
  ['behind', -CLOCK_DIFFERENCE_MS],
] as const)
  test(`a server whose clock is five minutes ${what} ends no run of another, and accepts its token`, async (t) => {
    const backend = memoryBackend()
    const { runId, start } = await runningOn(t, sharing(backend), { leaseMs: LEASE_MS, runMsMax: LEASE_MS })
    let sweeps = 0
    const counted = hooked(sharing(backend), (call, detail, work) => {
      if (call === 'getMany' && detail.startsWith('e\0')) sweeps++
      return work()
    })
    const clock = { now: () => Date.now() + differenceMs }
    const other = automated(t, { backend: counted, leaseMs: LEASE_MS, sweepIntervalMs: 5, service: { clock } })
    await other.service.ready()
    await eventually(() => sweeps >= 6, 'the other server has looked for lost runs')
    assert.equal((await other.extension.project('p').runs.get(runId)).status, 'pending')
    const token = { Authorization: `Bearer ${start.runFile.speckleToken}` }
    const report = { sequence: 1, status: 'succeeded', message: 'done' }
    assert.equal((await other.ask('POST', `p/runs/${runId}/report`, report, token)).status, 200)
    assert.equal((await other.extension.project('p').runs.get(runId)).status, 'succeeded')
  })

test('a server that was stopped past its lease finds its run ended, and its writes refused', async (t) => {
  const inner = memoryBackend()
  const gate = stoppable(sharing(inner))
  const { runId, start, extension, reasons } = await runningOn(t, gate.backend)
  gate.stop()
  const late = start.backend.report({ sequence: 1, status: 'succeeded', message: 'too late' })
  const time = new TimeByHand()
  const { environment } = time
  const other = automated(t, { backend: sharing(inner), sweepIntervalMs: 5, service: { environment } })
  await other.service.ready()
  const { runs } = other.extension.project('p')
  await eventually(async () => {
    time.pass(LEASE_MS)
    return (await runs.get(runId)).status === 'timeout'
  }, 'the other server ends it')
  gate.resume()
  await assert.rejects(late, { code: 'conflict' })
  await extension.idle()
  assert.deepEqual(reasons, ['timeout'])
  assert.equal((await runs.get(runId)).status, 'timeout')
})

test('of three servers one sweeps the storage, and another when that one is gone', async (t) => {
  const inner = memoryBackend()
  const filling = automated(t, { backend: sharing(inner) })
  await withVersion(filling)
  await filling.service.close()
  const opened: { service: Fixture['service']; counts: { looks: number; sweeps: number }; time: TimeByHand }[] = []
  for (let at = 0; at < 3; at++) {
    const counts = { looks: 0, sweeps: 0 }
    const time = new TimeByHand()
    const shared = hooked(sharing(inner), (call, detail, work) => {
      if (call === 'getMany' && detail.startsWith('e\0')) counts.looks++
      return work()
    })
    const list: StorageBackend['blobs']['list'] = (prefix, options) => {
      if (prefix.startsWith('x/')) counts.sweeps++
      return shared.blobs.list(prefix, options)
    }
    const backend = { ...shared, blobs: { ...shared.blobs, list } }
    const { service } = automated(t, { backend, sweepIntervalMs: 5, service: { environment: time.environment } })
    opened.push({ service, counts, time })
  }
  const [first, ...others] = opened
  const sweeps = (): readonly number[] => opened.map(({ counts }) => counts.sweeps)
  const looked = (of: typeof opened): Promise<void> => {
    const wanted = of.map(({ counts }) => ({ counts, looks: counts.looks + 5 }))
    return eventually(
      () => wanted.every(({ counts, looks }) => counts.looks >= looks),
      'the servers have looked around',
    )
  }
  for (const { service } of opened) await service.ready()
  await eventually(() => first.counts.sweeps > 0, 'the first server sweeps')
  await looked(opened)
  assert.deepEqual(sweeps(), [1, 0, 0])
  await first.service.close()
  for (const { time } of others) time.pass(30_000)
  await eventually(() => others.some(({ counts }) => counts.sweeps > 0), 'another server sweeps')
  await looked(others)
  assert.deepEqual(
    sweeps().toSorted((a, b) => a - b),
    [0, 1, 1],
  )
})

test('a run whose function has reported something is not started again when it is lost', async (t) => {
  const time = new TimeByHand()
  const backend = memoryBackend()
  const gate = stoppable(sharing(backend))
  const first = await runningOn(t, gate.backend, { attemptsMax: 2 })
  // The report that it runs was lost on the way, and a later one was not.
  await first.start.backend.report({ sequence: 1, logs: [{ atMs: 1, level: 'info', message: 'measured' }] })
  gate.stop()
  const begun: string[] = []
  const noting = inProcess(async ({ run }) => void begun.push(run.id))
  const second = automated(t, {
    backend: sharing(backend),
    functions: [definition(noting)],
    attemptsMax: 2,
    service: { environment: time.environment },
  })
  await second.service.ready()
  const { runs } = second.extension.project('p')
  try {
    await eventually(async () => {
      time.pass(LEASE_MS)
      return begun.length > 0 || (await runs.get(first.runId)).status === 'timeout'
    }, 'it counts as lost')
    assert.deepEqual(begun, [])
  } finally {
    gate.resume()
  }
})
