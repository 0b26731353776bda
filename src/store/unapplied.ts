import { StowageError } from '../errors.ts'
import type { CommittedPack } from './committer.ts'

/**
 * Packs whose commit went through and whose ids could not all be written, since the storage failed in between. Their uploads were told of an error;
 * they become whole as soon as the storage works again, so that nobody sees a part of one for long.
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

  /** Tries them all, and throws what keeps one from being applied: the next call tries it again. */
  async applyAll(): Promise<void> {
    for (const pack of this.#packs) {
      try {
        await this.#apply(pack)
      } catch (error) {
        if (!isRemoved(error)) throw error
      }
      this.#packs.delete(pack)
    }
  }
}

function isRemoved(error: unknown): boolean {
  return error instanceof StowageError && error.code === 'project_removed'
}
