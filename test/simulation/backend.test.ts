import { after, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  FaultInjector,
  Random,
  Scheduler,
  SimulatedBackend,
  SimulatedProcess,
  SimulatedStorage,
} from '../../src/simulation/index.ts'
import { blobStoreConformance, recordStoreConformance } from '../../src/storage/conformance/index.ts'
import { asGuarded } from '../../src/storage/guard.ts'
import type { StorageBackend } from '../../src/storage/backend.ts'

const random = new Random(5)
const scheduler = new Scheduler(random.fork('schedule'), { stepsMax: Infinity })
const storage = new SimulatedStorage(scheduler, { nowMs: () => Date.now() })
let opened = 0
let isOver = false

/** A connection of a process of its own, as the service sees it. */
function connect(): StorageBackend {
  const name = `process ${opened++}`
  return asGuarded(
    new SimulatedBackend({
      storage,
      scheduler,
      process: new SimulatedProcess(name, scheduler, random.fork(name)),
      random: random.fork(`calls ${name}`),
      faults: new FaultInjector([]),
      onCrash: () => undefined,
    }),
  )
}

/** Lets virtual time pass while the suite waits for its calls. */
async function passTime(): Promise<void> {
  while (!isOver) {
    await scheduler.runUntil(() => isOver)
    await nextTurn()
  }
}

void passTime()
after(() => (isOver = true))

for (const { name, run } of recordStoreConformance(() => connect().records)) test(name, run)
/** It keeps what is put in memory. */
const BOUNDED_MEMORY = /streams through bounded memory/
for (const { name, run } of blobStoreConformance(() => connect().blobs)) if (!BOUNDED_MEMORY.test(name)) test(name, run)
