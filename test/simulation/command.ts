import type { RunParts } from '../../src/simulation/shrink.ts'

export const WORKLOADS = ['objects', 'automation'] as const

/** The command line of this repository that makes the run again. */
export function commandOf(
  { seed, servers, operations, faults }: RunParts & { readonly seed: number },
  workload: (typeof WORKLOADS)[number],
): string {
  const list = (places: readonly number[]): string => (places.length === 0 ? 'none' : places.join())
  const parts = `--seed ${seed} --servers ${servers} --operations ${list(operations)} --faults ${list(faults)}`
  return `npm run simulate -- ${workload === 'objects' ? '' : `--workload ${workload} `}${parts}`
}
