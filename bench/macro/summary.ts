import type { Results } from './results.ts'
import { formatNumber } from './table.ts'

/** What was measured on what. */
export function describeMachine({ machine, server, datasets, seconds }: Results): string {
  const models = datasets.map(
    ({ name, objects, jsonBytes, compressionRatio }) =>
      `  ${name}: ${objects.toLocaleString('en')} objects, ${formatNumber(jsonBytes / 1e6)} MB of JSON, ${compressionRatio.toFixed(1)} : 1 with gzip -6`,
  )
  const { processor, cores, memoryBytes, node, gunzipMbPerSecond } = machine
  return [
    `${server}, measured in ${Math.round(seconds)} s`,
    `${processor}, ${cores} cores, ${formatNumber(memoryBytes / 1e9)} GB, node ${node}, gunzip ${formatNumber(gunzipMbPerSecond)} MB/s`,
    ...models,
  ].join('\n')
}

/** How far the figures can be trusted. */
export function describeNoise({ machine }: Results): string {
  const shares = `steal ${percent(machine.stealShare)}, other programs ${percent(machine.othersShare)} of the processors`
  return machine.busy
    ? `OTHERS USED THIS MACHINE (${shares}): the quietest attempt at each row counts, and its figures may still be wrong. Absolute targets are not counted.`
    : `The machine was quiet: ${shares}.`
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`
}
