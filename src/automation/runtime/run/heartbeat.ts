import type { Environment, Timer } from '../../../environment.ts'
import type { RunBackend } from '../run-backend.ts'
import { RUN_STATUS_RANK } from '../../author/run-data.ts'
import { isRefusal } from './retry.ts'

export interface HeartbeatOptions {
  readonly environment: Pick<Environment, 'setTimer'>
  readonly intervalMs: number
  readonly onOver: (why: string) => void
}

/**
 * Reports at intervals that the run is alive, and notices when it is no longer wanted. Returns a function that stops
 * it.
 */
export function startHeartbeat(backend: RunBackend, { environment, intervalMs, onOver }: HeartbeatOptions): () => void {
  const stopped = new AbortController()
  const { signal } = stopped
  let isAsking = false
  const beat = async (): Promise<void> => {
    if (isAsking) return
    isAsking = true
    try {
      const lease = await backend.renewLease?.({ signal })
      if (lease?.canceled === true || lease?.status === 'canceled') onOver('the run was canceled')
      else if (lease !== undefined && RUN_STATUS_RANK[lease.status] > RUN_STATUS_RANK.running)
        onOver(`the server has ended the run as ${lease.status}`)
    } catch (error) {
      /* What passes is tried again at the next beat. */
      if (!signal.aborted && isRefusal(error)) onOver('the server accepts nothing more from this run')
    } finally {
      isAsking = false
    }
  }
  let timer: Timer | undefined
  const wait = (): void => {
    timer = environment
      .setTimer(intervalMs, () => {
        wait()
        void beat()
      })
      .unref()
  }
  if (backend.renewLease !== undefined) wait()
  return () => {
    timer?.cancel()
    stopped.abort()
  }
}
