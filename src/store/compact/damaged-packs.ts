import type { Environment } from '../../environment.ts'
import { StowageError } from '../../errors.ts'
import type { BlobStore } from '../../storage/backend.ts'
import { corrupt } from '../bytes/byte-codec.ts'
import { type Pack, onlyIfDamaged } from '../records/pack-catalog.ts'
import { checkBlocks, readWholeTables } from '../upkeep/check-pack.ts'

/** More damaged packs than any storage in use has; beyond them the oldest are looked at again. */
const PACKS_MAX = 1_000

export interface DamagedPacksParts {
  readonly blobs: BlobStore
  readonly environment: Environment
  readonly onError: (error: unknown) => void
}

/** Packs that merges leave alone, because they cannot be read whole. Until the process ends: then each is tried once more. */
export class DamagedPacks {
  readonly #parts: DamagedPacksParts
  readonly #packIds = new Set<string>()

  constructor(parts: DamagedPacksParts) {
    this.#parts = parts
  }

  has(packId: string): boolean {
    return this.#packIds.has(packId)
  }

  /** Reads these packs whole. Notes and reports the damaged ones; resolves to whether there are any. */
  async find(packs: readonly Pack[], signal: AbortSignal): Promise<boolean> {
    let isAny = false
    for (const pack of packs) {
      const damage = await this.#damageOf(pack, signal)
      if (damage === undefined) continue
      isAny = true
      this.#note(pack, damage)
    }
    return isAny
  }

  async #damageOf(pack: Pack, signal: AbortSignal): Promise<string | undefined> {
    const { blobs, environment } = this.#parts
    try {
      const tables = await readWholeTables(blobs, pack, environment)
      for await (const { message } of checkBlocks(blobs, pack, tables, { every: 1, environment }, signal))
        return message
    } catch (error) {
      onlyIfDamaged(error)
      return error instanceof StowageError ? error.message : undefined
    }
    return undefined
  }

  #note({ projectId, record: { packId } }: Pack, damage: string): void {
    const [oldest] = this.#packIds
    if (this.#packIds.size >= PACKS_MAX && oldest !== undefined) this.#packIds.delete(oldest)
    this.#packIds.add(packId)
    this.#parts.onError(
      corrupt(`pack ${packId} of project ${JSON.stringify(projectId)} is damaged, so it is not merged: ${damage}`),
    )
  }
}
