import { constants } from 'node:os'

const STOPPING = ['SIGTERM', 'SIGINT'] as const

/**
 * Resolves at the first signal to stop, with its name. A second one ends the process at once, with the exit code that
 * shells expect.
 */
export function signalToStop(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let asked = false
    for (const signal of STOPPING) {
      process.on(signal, () => {
        if (asked) process.exit(128 + constants.signals[signal])
        asked = true
        resolve(signal)
      })
    }
  })
}
