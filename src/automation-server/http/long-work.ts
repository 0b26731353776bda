import { setTimeout as wait } from 'node:timers/promises'
import type { StowageError } from '../../errors.ts'
import type { Answer } from '../../http/exchange.ts'
import { toStowageError } from '../../http/error-answer.ts'

/** How long work may take before its answer begins: until then, a failure has its own status. */
const SILENT_MS = 1_000
/** Less than proxies and clients wait for a sign of life. */
const LINE_EVERY_MS = 5_000
const FASTEST_MS = 200

export interface LongWork<P, R> {
  /** Called with the newest progress in mind; must end soon after the signal aborts. */
  readonly work: (onProgress: (progress: P) => void) => Promise<R>
  readonly signal: AbortSignal
  /** Receives failures that come after the answer began. */
  readonly onError: (error: StowageError) => void
}

/**
 * Answers work that takes longer than a proxy waits in lines of JSON: `{"progress": ...}` at least every five seconds,
 * `null` before the first, and `{"report": ...}` or `{"error": ...}` last. Rejects if the work fails soon. A client that
 * leaves stops the work.
 */
export async function longWorkAnswer<P, R>({ work, signal, onError }: LongWork<P, R>): Promise<Answer> {
  let progress: P | null = null
  let wake: () => void = () => undefined
  const done = work((next) => {
    progress = next
    wake()
  })
  done.catch(() => undefined)
  const stop = new AbortController()
  await Promise.race([done, wait(SILENT_MS, undefined, { signal: stop.signal }).catch(() => undefined)]).finally(() =>
    stop.abort(),
  )
  return {
    status: 200,
    headers: {
      'Content-Type': 'application/x-ndjson; charset=utf-8',
      'Cache-Control': 'private, no-store',
      'X-Accel-Buffering': 'no',
    },
    body: lines(),
  }

  async function* lines(): AsyncGenerator<Uint8Array> {
    const ended = done.then(
      (report) => ({ report }),
      (thrown: unknown) => {
        const error = toStowageError(thrown)
        if (!signal.aborted) onError(error)
        return { error }
      },
    )
    for (;;) {
      const next = await nextOf(ended)
      yield line(next ?? { progress })
      if (next !== undefined) return
    }
  }

  /** The end, or `undefined` when there is progress to tell or the time has come. */
  async function nextOf<E>(ended: Promise<E>): Promise<E | undefined> {
    const timer = new AbortController()
    const after = (ms: number): Promise<undefined> =>
      wait(ms, undefined, { signal: timer.signal }).catch(() => undefined)
    const moved = new Promise<undefined>((resolve) => {
      wake = () => resolve(undefined)
    })
    try {
      return await Promise.race([ended, after(LINE_EVERY_MS), moved.then(() => after(FASTEST_MS))])
    } finally {
      timer.abort()
      wake = () => undefined
    }
  }
}

function line(value: unknown): Uint8Array {
  return Buffer.from(`${JSON.stringify(value)}\n`)
}
