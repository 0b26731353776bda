/**
 * Waits for one thing to happen, for an abort (where there is a signal), or until `timeoutMs` have passed without it. `subscribe` gets the function to call when it has
 * happened and returns what takes the subscription back. Rejects with the signal's reason, or with what `late` makes.
 */
export function waitFor(
  subscribe: (happened: (error?: Error) => void) => () => void,
  limits: { readonly signal?: AbortSignal; readonly timeoutMs: number; readonly late: () => Error },
): Promise<void> {
  const { signal, timeoutMs, late } = limits
  return new Promise<void>((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason as Error)
      return
    }
    const settle = (error?: Error): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
      unsubscribe()
      if (error === undefined) resolve()
      else reject(error)
    }
    const onAbort = (): void => settle(signal?.reason as Error)
    const timer = setTimeout(() => settle(late()), timeoutMs)
    signal?.addEventListener('abort', onAbort)
    const unsubscribe = subscribe(settle)
  })
}
