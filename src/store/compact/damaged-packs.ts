import type { Environment } from '../../environment.ts'
import { StowageError } from '../../errors.ts'
import { type CompactionReport, DAMAGED_MAX } from '../../object/compaction.ts'
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
  readonly #damage = new Map<string, string>()

  constructor(parts: DamagedPacksParts) {
    this.#parts = parts
  }

  has(packId: string): boolean {
    return this.#damage.has(packId)
  }

  /** Those of these packs that are damaged, as a report tells them. */
  among(packIds: readonly string[]): Pick<CompactionReport, 'damagedPacks' | 'damaged'> {
    const damaged = packIds.flatMap((packId) => {
      const message = this.#damage.get(packId)
      return message === undefined ? [] : [{ packId, message }]
    })
    return { damagedPacks: damaged.length, damaged: damaged.slice(0, DAMAGED_MAX) }
  }

  /**
   * Reads these packs whole. Notes and reports the damaged ones; resolves to whether there are any. None is if the
   * project changed meanwhile (`isAsRead`): then they may be gone on purpose.
   */
  async find(packs: readonly Pack[], isAsRead: () => Promise<boolean>, signal: AbortSignal): Promise<boolean> {
    let isAny = false
    for (const pack of packs) {
      const damage = await this.#damageOf(pack, signal)
      if (damage === undefined) continue
      if (!(await isAsRead())) return false
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
    const [oldest] = this.#damage.keys()
    if (this.#damage.size >= PACKS_MAX && oldest !== undefined) this.#damage.delete(oldest)
    this.#damage.set(packId, damage)
    this.#parts.onError(
      corrupt(
        `pack ${packId} of project ${JSON.stringify(projectId)} is damaged, so it is not merged: ${damage}; run "stowage check" to see what it affects`,
      ),
    )
  }
}
