import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'

/**
 * For how long tests wait for what is to happen. It is no claim about speed: only what never happens takes longer,
 * however slow the machine is and whatever else it does.
 */
export const PATIENCE_MS = 60_000

/**
 * The grace of a service that is to close by itself: it ends only with what would never have ended, and long after the
 * test has lost its patience.
 */
export const ENDLESS_GRACE_MS: number = 3 * PATIENCE_MS

/** Waits until something is so. */
export async function eventually(isSo: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const beganAtMs = performance.now()
  while (!(await isSo())) {
    if (performance.now() - beganAtMs > PATIENCE_MS)
      throw new Error(`within ${PATIENCE_MS} ms it did not come to pass that ${what}`)
    await sleep(5)
  }
}

/** What something resolves to. An error if that takes too long. */
export async function inTime<T>(something: Promise<T>, what: string): Promise<T> {
  const late = new AbortController()
  const tooLate = sleep(PATIENCE_MS, undefined, { signal: late.signal }).then(() => {
    throw new Error(`within ${PATIENCE_MS} ms it did not come to pass that ${what}`)
  })
  tooLate.catch(() => undefined)
  try {
    return await Promise.race([something, tooLate])
  } finally {
    late.abort()
  }
}

/** Lets whatever needs no more than this process go on, so that what must not happen would have happened. */
export async function turns(count = 20): Promise<void> {
  for (let turn = 0; turn < count; turn++) await nextTurn()
}

/** Longer than the millisecond after which a timer fires that was set too far ahead. */
export async function longerThanAnOverflowedTimer(): Promise<void> {
  await sleep(2)
}

/** Closes a service, which waits for whatever is under way, so that it shows what was not freed. */
export async function closesByItself(service: { close(options: { graceMs: number }): Promise<void> }): Promise<void> {
  const beganAtMs = performance.now()
  const closing = service.close({ graceMs: ENDLESS_GRACE_MS }).then(() => true)
  const isClosed = await Promise.race([closing, sleep(PATIENCE_MS, false, { ref: false })])
  if (!isClosed) throw new Error(`something is still under way after ${Math.round(performance.now() - beganAtMs)} ms`)
}
