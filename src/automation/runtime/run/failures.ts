import { AsyncLocalStorage } from 'node:async_hooks'

type Fail = (error: unknown) => void

/** The run in whose course the current code was started, be it from a timer or from a promise that nobody waits for. */
const CURRENT_RUN: AsyncLocalStorage<Fail> = new AsyncLocalStorage()

export function withinRun<T>(fail: Fail, body: () => T): T {
  return CURRENT_RUN.run(fail, body)
}

/** For what a host does on behalf of a run, and what goes wrong in it is not the function's. */
export function outsideRun<T>(body: () => T): T {
  return CURRENT_RUN.exit(body)
}

/**
 * For a host that runs functions in its own process, in its own handlers of `uncaughtException` and `unhandledRejection`: ends the run that the error comes
 * from as an exception. False when it comes from none, and then it is the host's own.
 */
export function attributeFailure(error: unknown): boolean {
  const fail = CURRENT_RUN.getStore()
  fail?.(error)
  return fail !== undefined
}
