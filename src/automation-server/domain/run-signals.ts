export interface RunAddress {
  readonly projectId: string
  readonly runId: string
}

interface Listened extends RunAddress {
  readonly listeners: Set<() => void>
}

/** Signals within this process that a run has changed. A listener that misses it looks again a moment later. */
export class RunSignals {
  readonly #waiting = new Map<string, Listened>()
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
    for (const happened of this.#waiting.get(runId)?.listeners ?? []) happened()
  }

  /** The runs that have listeners. */
  listened(): readonly RunAddress[] {
    return [...this.#waiting.values()]
  }

  /** Calls `happened` at each change until the function that it returns is called. */
  listen({ projectId, runId }: RunAddress, happened: () => void): () => void {
    const waiting = this.#waiting.get(runId) ?? { projectId, runId, listeners: new Set() }
    waiting.listeners.add(happened)
    this.#waiting.set(runId, waiting)
    return () => {
      waiting.listeners.delete(happened)
      if (waiting.listeners.size === 0 && this.#waiting.get(runId) === waiting) this.#waiting.delete(runId)
    }
  }
}
