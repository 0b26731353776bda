import type { Environment } from '../environment.ts'
import { onAbort } from './abort.ts'

/** Resolves after `delayMs` milliseconds, or as soon as the signal aborts. */
export async function sleep(
  delayMs: number,
  environment: Pick<Environment, 'setTimer'>,
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  let forget = (): void => undefined
  await new Promise<void>((resolve) => {
    const timer = environment.setTimer(delayMs, resolve)
    forget = onAbort(signal, () => {
      timer.cancel()
      resolve()
    })
  })
  forget()
}
