/** What the attacked server is told on its command line. */
export interface AttackedSettings {
  /** The data folder. */
  readonly path: string
  readonly memoryBytesMax?: number
  readonly memoryWaitMs?: number
}

/** What it answers with when it is asked for its load. */
export interface Load {
  /** Processor time of the process since it began, user and system. */
  readonly cpuMs: number
  /** The longest time that the event loop was held since it was last asked. */
  readonly loopHeldMsMax: number
  /** What requests hold, by the service's own count. */
  readonly heldBytes: number
  /** What the engine's heap and buffers outside of it have in use, garbage included. */
  readonly heapBytes: number
  readonly buffersBytes: number
}
