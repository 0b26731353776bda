import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runInThisContext } from 'node:vm'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { replayOf, simulate, type Simulation, type SimulationOptions } from '../../src/simulation/index.ts'
import { commandOf } from './command.ts'

/** Makes the call in this text, as somebody does who pastes it. */
function called(text: string, backend?: SimulationOptions['backend']): Promise<Simulation> {
  const call = runInThisContext(`async (simulate, backend) => ${text}`) as (...names: unknown[]) => Promise<Simulation>
  return call(simulate, backend)
}

test('a replay is a call that makes the same run', async () => {
  const whole = await simulate({ seed: 3, servers: 2, faultKinds: ['crash', 'lostAnswer'] })
  const parts = { servers: 1, operations: whole.operations.slice(1, 4), faults: whole.faults.slice(0, 1) }
  const part = await simulate({ seed: 3, faultKinds: ['crash', 'lostAnswer'], ...parts })
  for (const simulation of [whole, part]) {
    const replay = replayOf(simulation)
    assert.match(replay, /^await simulate\(\{ seed: 3, .*, faultKinds: \['crash', 'lostAnswer'\] \}\)$/)
    assert.deepEqual(await called(replay), simulation)
  }
})

test('the replay of a run over a storage of one’s own names that storage', async () => {
  const backend = (): SimulationOptions['backend'] => {
    const storage = memoryBackend()
    return () => ({ ...storage, close: () => Promise.resolve() })
  }
  const simulation = await simulate({ seed: 2, operations: [0, 1, 2], faults: [], backend: backend() })
  const replay = replayOf(simulation)
  assert.equal(
    replay,
    `await simulate({ seed: 2, servers: ${simulation.servers}, operations: [0, 1, 2], faults: [], backend })`,
  )
  assert.deepEqual(await called(replay, backend()), simulation)
})

test('the command of this repository that makes a run again leaves nothing out', () => {
  const parts = { seed: 18, servers: 2, operations: [1, 4, 9], faults: [] }
  assert.equal(
    commandOf(parts, 'objects'),
    'npm run simulate -- --seed 18 --servers 2 --operations 1,4,9 --faults none',
  )
  assert.match(commandOf(parts, 'automation'), /^npm run simulate -- --workload automation --seed 18 /)
})
