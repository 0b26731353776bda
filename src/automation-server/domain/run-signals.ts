/** Signals within this process that a run has changed. A listener that misses it looks again a moment later. */
export class RunSignals {
  readonly #waiting = new Map<string, Set<() => void>>()
  readonly #closing = new AbortController()

  /** Aborts when the service is about to close. */
  get closing(): AbortSignal {
    return this.#closing.signal
  }

  close(): void {
    this.#closing.abort(new Error('the service is closing'))
    for (const runId of this.#waiting.keys()) this.changed(runId)
  }

  changed(runId: string): void {
    for (const happened of this.#waiting.get(runId) ?? []) happened()
  }

  /** Calls `happened` at each change until the function that it returns is called. */
  listen(runId: string, happened: () => void): () => void {
    const listeners = this.#waiting.get(runId) ?? new Set()
    this.#waiting.set(runId, listeners.add(happened))
    return () => {
      listeners.delete(happened)
      if (listeners.size === 0 && this.#waiting.get(runId) === listeners) this.#waiting.delete(runId)
    }
  }
}
