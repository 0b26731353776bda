/**
 * Runs of a service over a simulated storage, in which one seed decides everything: what clients do, in which order things happen, and what goes wrong.
 *
 * @example
 * import { replayOf, shrink, simulate } from 'stowage/simulation'
 *
 * for (let seed = 0; seed < 100; seed++) {
 *   const simulation = await simulate({ seed })
 *   if (simulation.violation === undefined) continue
 *   const smaller = await shrink(simulation)
 *   throw new Error(`${smaller.violation}: ${replayOf(smaller)}`)
 * }
 */
export { SimulatedBackend } from './backend.ts'
export type { ConnectionParts, SimulatedBackendParts } from './calls.ts'
export { FAULT_KINDS, FaultInjector } from './faults.ts'
export type { Fault, FaultKind, HeldCall } from './faults.ts'
export { SimulatedProcess } from './process.ts'
export { Random } from './random.ts'
export type { RunResult } from './run.ts'
export { Scheduler } from './scheduler.ts'
export type { Scheduled } from './scheduler.ts'
export { replayOf, shrink } from './shrink.ts'
export { simulate } from './simulate.ts'
export type { Simulation, SimulationOptions } from './simulate.ts'
export { SimulatedStorage } from './storage.ts'
