import type { OpenFolder } from '../src/storage/data-folder.ts'

/** One data folder that two halves share: opened when the first of them needs it, closed when the last that used it lets go. */
export class SharedFolder<T> {
  readonly #open: () => Promise<OpenFolder<T>>
  readonly #users = new Set<string>()
  #folder: Promise<OpenFolder<T>> | undefined

  constructor(open: () => Promise<OpenFolder<T>>) {
    this.#open = open
  }

  /** A failed opening is not remembered: what stood in the way may be gone at the next call. */
  async use(user: string): Promise<T> {
    this.#users.add(user)
    this.#folder ??= this.#open()
    const folder = this.#folder
    try {
      return (await folder).content
    } catch (error) {
      if (this.#folder === folder) this.#folder = undefined
      throw error
    }
  }

  async release(user: string): Promise<void> {
    this.#users.delete(user)
    const folder = this.#folder
    if (this.#users.size > 0 || !folder) return
    this.#folder = undefined
    await (await folder.catch(() => undefined))?.close()
  }
}
