import { type Simulation, simulate, type SimulationOptions } from './simulate.ts'

/** Runs that shrinking makes at most. */
const ATTEMPTS_MAX = 400

/** The parts of a run that can be left out. */
export interface RunParts {
  readonly servers: number
  readonly operations: readonly number[]
  readonly faults: readonly number[]
}

/**
 * A smaller run that breaks something too: without operations that are not needed for it, then without faults, then
 * with fewer servers. The same run where nothing can be left out.
 */
export async function shrink(
  failed: Simulation,
  options: Pick<SimulationOptions, 'faultKinds' | 'backend'> = {},
): Promise<Simulation> {
  return smallest(failed, (parts) => simulate({ ...options, seed: failed.seed, ...parts }))
}

/** The smallest run that still breaks something, of those that `attempt` makes. */
export async function smallest<T extends RunParts & Pick<Simulation, 'violation'>>(
  failed: T,
  attempt: (parts: RunParts) => Promise<T>,
): Promise<T> {
  let best = failed
  let attemptsLeft = ATTEMPTS_MAX
  const isSmaller = async (less: Partial<RunParts>): Promise<boolean> => {
    if (attemptsLeft-- <= 0) return false
    const { servers, operations, faults } = best
    const smaller = await attempt({ servers, operations, faults, ...less })
    if (smaller.violation === undefined) return false
    best = smaller
    return true
  }
  await dropAll(
    () => best.operations,
    (operations) => isSmaller({ operations }),
  )
  await dropAll(
    () => best.faults,
    (faults) => isSmaller({ faults }),
  )
  for (let servers = 1; servers < best.servers; servers++) if (await isSmaller({ servers })) break
  return best
}

/** Leaves out half of the items, then quarters, down to each by itself, wherever that goes well. */
async function dropAll(
  current: () => readonly number[],
  goesWithout: (left: readonly number[]) => Promise<boolean>,
): Promise<void> {
  for (let size = Math.ceil(current().length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let first = 0; first < current().length;) {
      const left = current().filter((_, at) => at < first || at >= first + size)
      if (!(await goesWithout(left))) first += size
    }
  }
}

/**
 * The call that makes the run again, as JavaScript: `await simulate({ seed: 18, servers: 2, ... })`. After a run over a
 * storage of your own, the call ends with the option `backend`, which must open that storage empty.
 */
export function replayOf({ seed, servers, operations, faults, faultKinds, isOwnBackend }: Simulation): string {
  const options = [
    `seed: ${seed}`,
    `servers: ${servers}`,
    `operations: [${operations.join(', ')}]`,
    `faults: [${faults.join(', ')}]`,
    ...(faultKinds === undefined ? [] : [`faultKinds: [${faultKinds.map((kind) => `'${kind}'`).join(', ')}]`]),
    ...(isOwnBackend ? ['backend'] : []),
  ]
  return `await simulate({ ${options.join(', ')} })`
}
