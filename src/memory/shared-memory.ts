import type { MemoryLease } from './memory-lease.ts'

/** Memory that several requests use at the same time, such as a plan. The first of them leases it for all. */
export class SharedMemory {
  readonly #bytes: number
  #users = 0
  #lease: MemoryLease | undefined
  #leasing: Promise<void> | undefined

  constructor(bytes: number) {
    this.#bytes = bytes
  }

  /**
   * Counts one more user. Call it before the first byte is used, and `release` exactly once after it resolved. Rejects as
   * `MemoryLease.hold` does; then the caller is no user.
   */
  async use(memory: MemoryLease): Promise<void> {
    this.#users++
    try {
      // Many that ask at once need it once. If the first of them fails, the others ask for themselves.
      if (this.#lease === undefined) await this.#leasing?.catch(() => undefined)
      if (this.#lease === undefined) await (this.#leasing = this.#hold(memory))
    } catch (error) {
      this.release()
      throw error
    }
  }

  /** The lease ends with the last user. */
  release(): void {
    this.#users--
    if (this.#users > 0) return
    this.#lease?.release()
    this.#lease = undefined
  }

  async #hold(memory: MemoryLease): Promise<void> {
    await memory.hold(this.#bytes)
    if (this.#lease === undefined) this.#lease = memory.split(this.#bytes)
    else memory.free(this.#bytes)
  }
}
