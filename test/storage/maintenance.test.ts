import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { REAL_ENVIRONMENT, type Environment } from '../../src/environment.ts'
import type { StorageBackend } from '../../src/storage/backend.ts'
import { type HeldStorage, withMaintenance } from '../../src/storage/maintenance-lease.ts'
import { MAINTENANCE_KEY, readMaintenance } from '../../src/storage/maintenance-record.ts'
import { maintainedBackend, refuseUnfinished } from '../../src/storage/maintenance-watch.ts'
import { chunks, key } from '../adapters/support.ts'
import { collected } from '../store/support.ts'
import { turns } from '../support/patience.ts'

/* One command and its servers over one storage. Each has a clock of its own, which the test moves. */

const ENTRY = { key: key('a'), value: key('value') }
const REFUSED = { code: 'maintenance', statusCode: 503, isRetryable: true }

/** A clock whose timers fire when the test lets its time pass. */
class HandClock {
  readonly environment: Environment
  readonly #timers = new Map<() => void, number>()
  #nowMs: number

  constructor(startMs: number) {
    this.#nowMs = startMs
    this.environment = {
      ...REAL_ENVIRONMENT,
      monotonicMs: () => this.#nowMs,
      setTimer: (delayMs, act) => {
        this.#timers.set(act, this.#nowMs + delayMs)
        const timer = { cancel: () => void this.#timers.delete(act), unref: () => timer }
        return timer
      },
    }
  }

  /** Time leaps, as if the process had been stopped: what was due fires once, late. */
  async leap(ms: number): Promise<void> {
    this.#nowMs += ms
    for (const [act, atMs] of this.#timers) {
      if (atMs > this.#nowMs) continue
      this.#timers.delete(act)
      act()
    }
    await turns()
  }

  /** Time passes while the process runs. */
  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 100) await this.leap(100)
  }
}

interface Scene {
  readonly storage: StorageBackend
  readonly command: HandClock
  readonly server: HandClock
  /** The storage as a server uses it. */
  readonly served: StorageBackend
}

function scene(): Scene {
  const memory = memoryBackend()
  const storage = { ...memory, records: Object.assign(memory.records, { isShared: true }) }
  // Clocks of two machines have nothing in common.
  const [command, server] = [new HandClock(1_000), new HandClock(9_000_000)]
  return { storage, command, server, served: maintainedBackend(storage, server.environment) }
}

const options = ({ command }: Scene, purpose: 'reindex' | 'copy' = 'reindex', source?: string) => ({
  purpose,
  holder: 'machine, process 1',
  drainMs: 1_000,
  environment: command.environment,
  ...(source === undefined ? {} : { source }),
})

/** A command that holds the storage until the test says so. */
async function holding(
  at: Scene,
  given: ReturnType<typeof options> & { readonly excludes?: boolean } = options(at),
): Promise<{ readonly held: HeldStorage; readonly ended: Promise<void>; end(error?: Error): void }> {
  let end: (error?: Error) => void = () => undefined
  let held: HeldStorage | undefined
  const work = new Promise<void>((resolve, reject) => (end = (error) => (error ? reject(error) : resolve())))
  const ended = withMaintenance(at.storage, given, (storage) => {
    held = storage
    return work
  })
  ended.catch(() => undefined)
  await turns()
  await at.command.pass(1_500)
  assert.ok(held, 'the storage is held')
  return { held, ended, end }
}

test('while a command holds the storage, servers refuse writes and answer reads, and go on at its end', async () => {
  const at = scene()
  const { records, blobs } = at.served
  await records.commit({ put: [ENTRY] })
  const { ended, end } = await holding(at)
  await at.server.pass(600)
  await assert.rejects(records.commit({ put: [ENTRY] }), REFUSED)
  await assert.rejects(records.insertMany([ENTRY]), REFUSED)
  await assert.rejects(blobs.put('a', chunks('x')), REFUSED)
  await assert.rejects(blobs.remove(['a']), REFUSED)
  assert.deepEqual((await records.getMany([ENTRY.key]))[0], ENTRY.value)
  end()
  await at.command.pass(100)
  await ended
  await at.server.pass(600)
  assert.deepEqual(await records.commit({ put: [ENTRY] }), { ok: true })
})

test('a command waits before it changes anything: until servers know, and their calls have ended', async () => {
  const at = scene()
  let isHeld = false
  const ended = withMaintenance(at.storage, options(at), async () => void (isHeld = true))
  await turns()
  await at.command.pass(1_400)
  assert.equal(isHeld, false)
  await at.command.pass(200)
  await ended
  assert.equal(isHeld, true)
})

test('from its first change on, servers answer nothing, and an unfinished command keeps it so', async () => {
  const at = scene()
  const { held, ended, end } = await holding(at, { ...options(at), excludes: true })
  await at.server.pass(600)
  await at.served.records.getMany([ENTRY.key])
  const changed = held.backend.records.commit({ put: [ENTRY] })
  await at.command.pass(1_400)
  assert.equal((await at.storage.records.getMany([ENTRY.key]))[0], undefined, 'not before all servers know')
  await at.command.pass(200)
  assert.deepEqual(await changed, { ok: true })
  await at.server.pass(600)
  await assert.rejects(at.served.records.getMany([ENTRY.key]), REFUSED)
  await assert.rejects(collected(at.served.records.range({ gte: key(''), lt: key('z') })), REFUSED)
  end(new Error('stopped in the middle'))
  await assert.rejects(ended, /stopped in the middle/)
  await at.server.pass(60_000)
  await assert.rejects(at.served.records.getMany([ENTRY.key]), REFUSED)
  await assert.rejects(refuseUnfinished(at.storage.records), { code: 'maintenance' })
  // Other work does not take over, the same does.
  const other = withMaintenance(at.storage, options(at, 'copy', 'folder'), async () => undefined)
  other.catch(() => undefined)
  await at.command.pass(12_000)
  await assert.rejects(other, /a "stowage reindex", begun on .* by machine, process 1, has not finished: run it again/)
  const again = withMaintenance(at.storage, options(at), async ({ isContinued }) => isContinued)
  await at.command.pass(14_000)
  assert.equal(await again, true)
  await at.server.pass(600)
  assert.deepEqual(await at.served.records.commit({ put: [ENTRY] }), { ok: true })
  await refuseUnfinished(at.storage.records)
})

test('servers go on by themselves when a command has died that had changed nothing', async () => {
  const at = scene()
  const { held } = await holding(at)
  await at.server.pass(600)
  await assert.rejects(at.served.records.commit({ put: [ENTRY] }), REFUSED)
  // It lives: its record changes.
  for (let round = 0; round < 10; round++) {
    await at.command.pass(2_000)
    await at.server.pass(2_000)
    await assert.rejects(at.served.records.commit({ put: [ENTRY] }), REFUSED)
  }
  // Its process stands still, and the server's does not.
  await at.server.pass(10_600)
  await at.served.records.commit({ put: [ENTRY] })
  await at.server.pass(600)
  assert.deepEqual(await at.served.records.commit({ put: [ENTRY] }), { ok: true })
  // When it goes on, it finds that it was too late.
  await at.command.leap(11_000)
  await assert.rejects(held.backend.records.commit({ put: [ENTRY] }), /does not hold the storage any more/)
})

test('of two commands one gets the storage, and one that died can be followed', async () => {
  const at = scene()
  const first = await holding(at)
  const other = new HandClock(0)
  const given = { ...options(at), environment: other.environment }
  const refused = withMaintenance(at.storage, given, async () => assert.fail('it is held'))
  refused.catch(() => undefined)
  for (let round = 0; round < 30; round++) {
    await at.command.pass(100)
    await other.pass(100)
  }
  await assert.rejects(refused, { code: 'conflict', message: /machine, process 1 works on the storage as a whole/ })
  const follower = withMaintenance(at.storage, given, async ({ isContinued }) => isContinued)
  await other.pass(14_000)
  assert.equal(await follower, false)
  await at.command.leap(2_100)
  await assert.rejects(first.held.backend.records.commit({ put: [ENTRY] }), /another command took it over/)
  first.end()
  await at.command.pass(100)
  await assert.rejects(first.ended, /does not hold the storage any more/)
})

test('a renewal whose answer was lost is no loss of the storage', async () => {
  const at = scene()
  const { records } = at.storage
  const commit = records.commit.bind(records)
  let lost = 0
  const storage = {
    ...at.storage,
    records: Object.assign(Object.create(records) as typeof records, {
      getMany: records.getMany.bind(records),
      commit: async (change: Parameters<typeof commit>[0]) => {
        await commit(change)
        lost++
        throw new Error('the connection broke')
      },
    }),
  }
  const { held, ended, end } = await holding(at)
  Object.assign(at.storage.records, { commit: storage.records.commit })
  await at.command.pass(4_500)
  assert.ok(lost >= 2)
  Object.assign(at.storage.records, { commit })
  assert.deepEqual(await held.backend.records.commit({ put: [ENTRY] }), { ok: true })
  end()
  await at.command.pass(100)
  await ended
  assert.equal(await readMaintenance(records), undefined)
})

test('a damaged record shuts the storage until a command takes it over', async () => {
  const at = scene()
  await at.storage.records.commit({ put: [{ key: MAINTENANCE_KEY, value: key('{"stage"') }] })
  await assert.rejects(at.served.records.getMany([ENTRY.key]), /maintenance is damaged/)
  const mending = withMaintenance(at.storage, options(at), async ({ isContinued }) => isContinued)
  await at.command.pass(14_000)
  assert.equal(await mending, true)
  await at.server.pass(600)
  await at.served.records.getMany([ENTRY.key])
})
