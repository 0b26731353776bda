import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { type Environment, REAL_ENVIRONMENT } from '../../src/environment.ts'
import { createObjectService, openAccess, type ServiceEvent } from '../../src/index.ts'
import { asGuarded } from '../../src/storage/guard.ts'
import { EPOCH_MS, EpochCounter } from '../../src/store/upkeep/epochs.ts'
import { PlainObjectStore } from '../http/plain-object-store.ts'
import { eventually } from '../support/patience.ts'
import { automated, type Fixture, uploadObjects, withVersion } from './support.ts'

const MINUTE_MS = 60_000
const DAY_MS = 1_440 * MINUTE_MS

/** An environment whose timers fire when the test says so. */
class HandTimers {
  readonly environment: Environment
  readonly #timers = new Map<() => void, number>()

  constructor() {
    this.environment = {
      ...REAL_ENVIRONMENT,
      setTimer: (delayMs, act) => {
        this.#timers.set(act, delayMs)
        const timer = { cancel: () => void this.#timers.delete(act), unref: () => timer }
        return timer
      },
    }
  }

  has(delayMs: number): boolean {
    return [...this.#timers.values()].includes(delayMs)
  }

  fire(delayMs: number): void {
    const due = [...this.#timers].filter(([, ms]) => ms === delayMs)
    for (const [act] of due) {
      this.#timers.delete(act)
      act()
    }
  }
}

test('a service collects and compacts all projects again and again, soon after its start the first time', async (t) => {
  const timers = new HandTimers()
  const { events, pass } = await scheduled(t, timers)
  await pass(3)
  timers.fire(10 * MINUTE_MS)
  await eventually(() => events.some(({ type }) => type === 'collection'), 'it is collected')
  await eventually(() => timers.has(DAY_MS), 'the next collection is a day later')
  const first = events.find((event) => event.type === 'collection')
  assert.deepEqual([first?.projectId, first?.condemnedObjects], ['p', 1])
  await pass(3)
  timers.fire(DAY_MS)
  await eventually(() => events.some((event) => event.type === 'collection' && event.freedObjects === 1), 'it is freed')
  timers.fire(5 * MINUTE_MS)
  await eventually(() => events.some(({ type }) => type === 'compaction'), 'packs are merged')
})

interface Scheduled extends Fixture {
  readonly events: readonly ServiceEvent[]
  readonly pass: (epochs: number) => Promise<void>
}

async function scheduled(t: TestContext, { environment }: HandTimers): Promise<Scheduled> {
  const backend = memoryBackend()
  const events: ServiceEvent[] = []
  const fixture = automated(t, {
    backend,
    service: {
      environment,
      onEvent: (event) => void events.push(event),
      collection: { everyMs: DAY_MS, olderThanMs: EPOCH_MS, undoMs: EPOCH_MS },
      compaction: { everyMs: 5 * MINUTE_MS },
    },
  })
  await withVersion(fixture)
  await uploadObjects(fixture.service, 'p', [{ id: 'zombie' }])
  const counter = new EpochCounter(asGuarded(backend).records, environment)
  const pass = async (epochs: number): Promise<void> => {
    for (let i = 0; i < epochs; i++) await counter.advance()
  }
  return { ...fixture, events, pass }
}

test('an invalid schedule is refused', () => {
  const access = openAccess()
  const open = (options: Pick<Parameters<typeof createObjectService>[0], 'collection' | 'compaction'>): void =>
    void createObjectService({ backend: memoryBackend(), access, ...options })
  assert.throws(() => open({ collection: { everyMs: 0 } }), /collection\.everyMs is 0; it must be an integer from 1/)
  assert.throws(
    () => open({ collection: { undoMs: -1 } }),
    /collection\.undoMs is -1; it must be a number of milliseconds of 0 or more/,
  )
  assert.throws(() => open({ compaction: { everyMs: 2 ** 31 } }), /compaction\.everyMs is 2147483648/)
  assert.throws(() => open({ compaction: { everyMs: 1, processorShare: 2 } }), /processorShare is 2; .* at most 1/)
  assert.throws(
    () => createObjectService({ store: new PlainObjectStore(), access, compaction: { everyMs: 1 } }),
    /collection and compaction need a storage backend/,
  )
})
