/**
 * Calls `late` when so much time has passed and the event loop has then looked once more for what came meanwhile: a process that was held up itself
 * must not say that its clients were. Returns what takes it back.
 */
export function startTimeout(timeoutMs: number, late: () => void): () => void {
  let lastLook: NodeJS.Immediate | undefined
  const timer = setTimeout(() => (lastLook = setImmediate(late)), timeoutMs)
  return () => {
    clearTimeout(timer)
    clearImmediate(lastLook)
  }
}

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
      notLate()
      signal?.removeEventListener('abort', onAbort)
      unsubscribe()
      if (error === undefined) resolve()
      else reject(error)
    }
    const onAbort = (): void => settle(signal?.reason as Error)
    const notLate = startTimeout(timeoutMs, () => settle(late()))
    signal?.addEventListener('abort', onAbort)
    const unsubscribe = subscribe(settle)
  })
}
