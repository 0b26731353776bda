import { AsyncLocalStorage } from 'node:async_hooks'

type Fail = (error: unknown) => void

/** The run that started the current code, be it in a timer or in a promise that nothing awaits. */
const CURRENT_RUN: AsyncLocalStorage<Fail> = new AsyncLocalStorage()

export function withinRun<T>(fail: Fail, body: () => T): T {
  return CURRENT_RUN.run(fail, body)
}

/** For work of the host on behalf of a run: its failures are not the function's. */
export function outsideRun<T>(body: () => T): T {
  return CURRENT_RUN.exit(body)
}

/**
 * For a host that runs functions in its own process, in its own handlers of `uncaughtException` and
 * `unhandledRejection`: ends the run that caused the error as an exception. False if no run caused it; then the error
 * is the host's own.
 */
export function failCurrentRun(error: unknown): boolean {
  const fail = CURRENT_RUN.getStore()
  fail?.(error)
  return fail !== undefined
}
