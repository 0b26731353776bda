import type { StorageBackend } from '../storage/backend.ts'
import { type Fault, FAULT_KINDS, type FaultKind, planFaults } from './faults.ts'
import type { Operation } from './operations.ts'
import { Random } from './random.ts'
import { run, type RunResult } from './run.ts'
import { planOperations } from './workload.ts'
import type { Plan } from './world.ts'

/** Which run, and which parts of it. */
export interface SimulationOptions {
  /** Decides everything: 0 to 2^53 - 1. */
  readonly seed: number
  /** Kinds of faults that may happen. All by default. */
  readonly faultKinds?: readonly FaultKind[]
  /** Servers over the one storage, 1 to 3. Drawn from the seed by default. */
  readonly servers?: number
  /** Places of the operations that are left in, of those that the seed plans. All by default. */
  readonly operations?: readonly number[]
  /** Places of the faults that are left in. All by default. */
  readonly faults?: readonly number[]
  /**
   * Opens a storage of your own in place of a simulated one: empty when it is called first in a run, later as it was
   * closed. All servers share one backend. A bit is never flipped, and a blob never torn.
   */
  readonly backend?: () => StorageBackend
}

/** The outcome of one run, and its parameters. */
export interface Simulation extends RunResult {
  /** The seed of the run. */
  readonly seed: number
  /** The number of servers over the one storage. */
  readonly servers: number
  /** The places of the operations in the plan of the seed. */
  readonly operations: readonly number[]
  /** The places of the faults in the plan of the seed. */
  readonly faults: readonly number[]
  /** The kinds of faults that the run was limited to; `undefined` if it was not. */
  readonly faultKinds: readonly FaultKind[] | undefined
  /** Whether the storage was opened by the option `backend`. */
  readonly isOwnBackend: boolean
}

/** About how many calls to the storage an operation makes. */
const CALLS_PER_OPERATION = 12

/**
 * Makes the run of a seed, to its end or to the first violation. The same options make the same run, on every machine.
 */
export async function simulate(options: SimulationOptions): Promise<Simulation> {
  const { plan, operations, faults } = planOf(options)
  const { seed, faultKinds, backend } = options
  const parameters = {
    seed,
    servers: plan.servers,
    operations,
    faults,
    faultKinds,
    isOwnBackend: backend !== undefined,
  }
  return { ...(await run(plan)), ...parameters }
}

interface Chosen {
  readonly plan: Plan
  readonly operations: readonly number[]
  readonly faults: readonly number[]
}

/** The parts of a seed's plan that are left in. */
export function planOf({ seed, faultKinds = FAULT_KINDS, backend, ...chosen }: SimulationOptions): Chosen {
  const random = new Random(seed)
  const drawn = random.fork('servers').pick([1, 1, 2, 3])
  const { models, operations, quotas, isUndisturbed } = planOperations(random.fork('operations'), drawn)
  const planned = planFaults(
    random.fork('faults'),
    isUndisturbed ? [] : faultKinds,
    operations.length * CALLS_PER_OPERATION,
  )
  const faults = chosen.faults ?? planned.map((_, at) => at)
  const left = chosen.operations ?? operations.map(({ index }) => index)
  const plan: Plan = {
    seed,
    servers: chosen.servers ?? drawn,
    models,
    quotas,
    operations: left.flatMap((index): Operation[] => operations.slice(index, index + 1)),
    faults: faults
      .flatMap((at): Fault[] => planned.slice(at, at + 1))
      .filter(({ kind }) => !backend || kind !== 'flip'),
    openBackend: backend,
  }
  return { plan, operations: left, faults }
}
