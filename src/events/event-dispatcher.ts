import { type Channel, channel } from 'node:diagnostics_channel'
import type { StowageError } from '../errors.ts'
import type { Logger } from '../logger.ts'
import { EVENT_CHANNELS, LIMIT_OF_CODE, type ServiceEvent } from './events.ts'

/** Receives every event of a service. Its errors go to the logger and affect nothing. */
export type ServiceListener = (event: ServiceEvent) => void

/** An event before the dispatcher completes it. */
export type NewEvent<E = ServiceEvent> = E extends ServiceEvent ? Omit<E, 'service'> : never

export interface EventDispatcherOptions {
  readonly service: string
  readonly onEvent: ServiceListener | undefined
  readonly logger: Logger | undefined
  readonly requestLog: 'debug' | 'info' | undefined
}

type Channels = { readonly [T in ServiceEvent['type']]: Channel }

/** Tells the events of one service to its own listeners and to the channels of the process. */
export class EventDispatcher {
  readonly service: string
  readonly #logger: Logger | undefined
  readonly #listeners = new Set<ServiceListener>()
  readonly #channels: Channels = Object.fromEntries(
    Object.entries(EVENT_CHANNELS).map(([type, name]) => [type, channel(name)]),
  ) as unknown as Channels

  constructor({ service, onEvent, logger, requestLog }: EventDispatcherOptions) {
    this.service = service
    this.#logger = logger
    if (onEvent !== undefined) this.#listeners.add(onEvent)
    if (logger !== undefined && requestLog !== undefined)
      this.#listeners.add((event) => logRequest(logger, requestLog, event))
  }

  /** The function that it returns takes the subscription back. */
  subscribe(listener: ServiceListener): () => void {
    // One listener may be subscribed twice, and each subscription ends on its own.
    const subscription: ServiceListener = (event) => listener(event)
    this.#listeners.add(subscription)
    return () => void this.#listeners.delete(subscription)
  }

  hasListeners(type: ServiceEvent['type']): boolean {
    return this.#listeners.size > 0 || this.#channels[type].hasSubscribers
  }

  /** `make` is not called without listeners. An error of one listener affects nothing else. */
  emit<T extends ServiceEvent['type']>(
    type: T,
    make: () => Omit<NewEvent<Extract<ServiceEvent, { readonly type: T }>>, 'type'>,
  ): void {
    if (!this.hasListeners(type)) return
    const event = Object.freeze({ type, service: this.service, ...make() }) as unknown as ServiceEvent
    for (const listener of this.#listeners) this.#hear(listener, event)
    const published = this.#channels[type]
    if (published.hasSubscribers) published.publish(event)
  }

  /** An error, with the events about limits and storage that it implies. */
  emitError(error: StowageError, facts: { readonly requestId?: string; readonly projectId?: string }): void {
    const { code, statusCode: status, isRetryable } = error
    const limit = LIMIT_OF_CODE[code]
    this.emit('error', () => ({ ...facts, status, code, isRetryable }))
    if (limit !== undefined) this.emit('limit', () => ({ ...facts, limit, status, code }))
    if (code === 'corrupt_data') this.emit('finding', () => ({ ...facts, code }))
  }

  #hear(listener: ServiceListener, event: ServiceEvent): void {
    const failed = (thrown: unknown): void =>
      this.#logger?.error({ err: thrown, requestId: event.requestId }, `a listener of ${event.type} events threw`)
    try {
      const heard: unknown = listener(event)
      if (heard instanceof Promise) heard.catch(failed)
    } catch (thrown) {
      failed(thrown)
    }
  }
}

function logRequest(logger: Logger, level: 'debug' | 'info', event: ServiceEvent): void {
  if (event.type !== 'request') return
  const { type: _type, service: _service, ...fields } = event
  logger[level]?.(fields, 'request')
}
