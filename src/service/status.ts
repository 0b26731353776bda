import type { InFlight } from '../events/request-trace.ts'
import type { MemoryInUse } from '../object/graph-store.ts'
import { isStorageError } from '../storage/storage-errors.ts'

/** The state of a service between its creation and its end. `failed`: the storage could not be opened. */
export type ServiceState = 'new' | 'opening' | 'ready' | 'failed' | 'closing' | 'closed'

/** The current state of a service. Reading it costs nothing. */
export interface ServiceStatus {
  /**
   * Only `ready` answers requests. `failed`: the storage could not be opened, or a write or sync failed and it accepts
   * no more; both last until it is opened anew.
   */
  readonly state: ServiceState
  /** Requests that are under way. */
  readonly requestsInFlight: number
  /** Uploads that are being stored, over HTTP and in process. */
  readonly uploadsInFlight: number
  /** Answers with objects that are being sent, over HTTP and in process. */
  readonly downloadsInFlight: number
  /** Memory that requests hold, the buffers of answers included. Only over a backend. */
  readonly requestMemory?: MemoryInUse
  /** Memory of the buffers of answers alone. Only over a backend. */
  readonly answerMemory?: MemoryInUse
}

const CAUSES_MAX = 8

/** Follows the life of a service. */
export class ServiceLifecycle {
  readonly inFlight: InFlight = { uploads: 0, downloads: 0 }
  #state: ServiceState = 'new'

  get state(): ServiceState {
    return this.#state
  }

  opening(opened: Promise<void>): void {
    this.#state = 'opening'
    opened.then(
      () => this.#become('ready'),
      () => this.#become('failed'),
    )
  }

  /** A storage that has lost a write reports it with every later error. */
  erred(error: unknown): void {
    let cause = error
    for (let depth = 0; depth < CAUSES_MAX && cause instanceof Error; depth++, cause = cause.cause) {
      if (isStorageError(cause, 'StoragePoisonedError')) this.#become('failed')
    }
  }

  closing(closed: Promise<void>): void {
    this.#state = 'closing'
    const end = (): void => void (this.#state = 'closed')
    closed.then(end, end)
  }

  #become(state: 'ready' | 'failed'): void {
    if (this.#state !== 'closing' && this.#state !== 'closed') this.#state = state
  }
}
