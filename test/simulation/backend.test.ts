import { test } from 'node:test'
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

/** Lets virtual time pass while a case waits for its calls, and no longer: other files share this process. */
async function withTime(run: () => Promise<void>): Promise<void> {
  let isOver = false
  const passing = passTime(() => isOver)
  try {
    await run()
  } finally {
    isOver = true
    await passing
  }
}

async function passTime(isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    await scheduler.runUntil(isOver)
    await nextTurn()
  }
}

for (const { name, run } of recordStoreConformance(() => connect().records)) test(name, () => withTime(run))
/** It keeps what is put in memory. */
const BOUNDED_MEMORY = /in bounded memory/
for (const { name, run } of blobStoreConformance(() => connect().blobs))
  if (!BOUNDED_MEMORY.test(name)) test(name, () => withTime(run))
