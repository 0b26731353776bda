import { StowageError } from '../../errors.ts'
import type { CommittedPack } from '../records/committed-pack.ts'

/**
 * Packs that were committed but whose ids could not all be written, because the storage failed in between. Their
 * uploads received an error. They become whole as soon as the storage works again, so that nobody sees a part of one
 * for long.
 */
export class UnappliedPacks {
  readonly #packs = new Set<CommittedPack>()
  readonly #apply: (pack: CommittedPack) => Promise<void>

  constructor(apply: (pack: CommittedPack) => Promise<void>) {
    this.#apply = apply
  }

  get size(): number {
    return this.#packs.size
  }

  add(pack: CommittedPack): void {
    this.#packs.add(pack)
  }

  /**
   * Tries them all. Throws errors of the storage, and tries again at the next call; also throws for damaged packs,
   * which no retry mends.
   */
  async applyAll(): Promise<void> {
    for (const pack of this.#packs) {
      try {
        await this.#apply(pack)
        this.#packs.delete(pack)
      } catch (error) {
        const code = error instanceof StowageError ? error.code : undefined
        if (code === 'project_removed' || code === 'corrupt_data') this.#packs.delete(pack)
        if (code !== 'project_removed') throw error
      }
    }
  }
}
