/** Everything that waits for one signal, behind one listener: Node reports more than ten listeners as a leak. */
class AbortListeners {
  static readonly #of = new WeakMap<AbortSignal, AbortListeners>()
  readonly #signal: AbortSignal
  readonly #acts = new Set<() => void>()
  readonly #onAbort = (): void => {
    for (const act of this.#acts) act()
  }

  static of(signal: AbortSignal): AbortListeners {
    const known = AbortListeners.#of.get(signal)
    if (known !== undefined) return known
    const listeners = new AbortListeners(signal)
    AbortListeners.#of.set(signal, listeners)
    return listeners
  }

  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  add(act: () => void): void {
    if (this.#acts.size === 0) this.#signal.addEventListener('abort', this.#onAbort, { once: true })
    this.#acts.add(act)
  }

  delete(act: () => void): void {
    this.#acts.delete(act)
    if (this.#acts.size === 0) this.#signal.removeEventListener('abort', this.#onAbort)
  }
}

/** Calls `act` when the signal aborts, or at once if it has. The function that it returns unregisters `act`. */
export function onAbort(signal: AbortSignal, act: () => void): () => void {
  if (signal.aborted) act()
  else AbortListeners.of(signal).add(act)
  return () => AbortListeners.of(signal).delete(act)
}

/**
 * Settles as `step` does, or rejects with the signal's reason if that comes first. For steps that may ignore the
 * signal.
 */
export async function orAborted<T>(step: Promise<T>, signal: AbortSignal): Promise<T> {
  let forget = (): void => undefined
  const aborted = new Promise<never>((_, reject) => (forget = onAbort(signal, () => reject(signal.reason as Error))))
  try {
    return await Promise.race([step, aborted])
  } finally {
    forget()
  }
}

/** A controller that also aborts with the signals that it is linked to, until `unlink` is called. */
export interface LinkedAbort {
  readonly controller: AbortController
  readonly unlink: () => void
}

/**
 * In place of `AbortSignal.any`, whose signals Node keeps alive as long as something listens to them, even if nothing
 * else refers to what listens.
 */
export function linkedAbort(...signals: readonly (AbortSignal | undefined)[]): LinkedAbort {
  const controller = new AbortController()
  const unlinks: (() => void)[] = []
  for (const signal of signals)
    if (signal !== undefined) unlinks.push(onAbort(signal, () => controller.abort(signal.reason)))
  return {
    controller,
    unlink: () => {
      for (const unlink of unlinks) unlink()
    },
  }
}

/**
 * Yields the items of `content` until the signal aborts: then it throws the reason, even while `content` keeps it
 * waiting.
 */
export async function* abortable<T>(
  content: AsyncIterable<T>,
  signal: AbortSignal | undefined,
): AsyncGenerator<T, void, void> {
  if (signal === undefined) {
    yield* content
    return
  }
  const iterator = content[Symbol.asyncIterator]()
  try {
    for (;;) {
      const next = await orAborted(iterator.next(), signal)
      if (next.done === true) return
      yield next.value
    }
  } finally {
    // Not awaited: content that hangs would keep the caller waiting. After the content's own end this does nothing.
    void closeIterator(iterator)
  }
}

/** Ends an iterator that is not read to its end. Its failures are ignored: the reason for leaving counts. */
export async function closeIterator(iterator: AsyncIterator<unknown>): Promise<void> {
  try {
    await iterator.return?.()
  } catch {
    // The caller already receives the reason for stopping.
  }
}
