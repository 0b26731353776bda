/**
 * Processor time of this process so far. What tests bound is this one: unlike the time of a clock it does not count
 * what other processes do, nor how long this one had no processor. Its bounds are still far above what is measured,
 * since machines differ, and below what a fault would take.
 */
export function processorMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}
