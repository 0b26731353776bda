import type { Bitmap } from '../bytes/bitmap.ts'
import { damage, type Finding } from './finding.ts'
import { isRemoved } from '../records/projects.ts'
import type { ObjectLocation, PackRecord, ProjectHead } from '../records/records.ts'
import type { Tombstone } from './tombstone.ts'

/** The findings of a check so far, to compare the rest with. */
export class CheckState {
  readonly heads: Map<string, ProjectHead> = new Map()
  /** Blobs that a record names. */
  readonly named: Set<string> = new Set()
  readonly #pending = new Set<string>()
  /** Packs by their number; `undefined` for those whose record is damaged. */
  readonly #packs = new Map<string, { readonly objects: number; readonly owned: Bitmap | undefined } | undefined>()

  isRemoved(projectId: string, generation: number): boolean {
    return isRemoved(this.heads.get(projectId), generation)
  }

  addPending(projectId: string, generation: number, sequence: number): void {
    this.#pending.add(nameOf(projectId, generation, sequence))
  }

  addPack(projectId: string, generation: number, sequence: number, record: PackRecord | undefined): void {
    this.#packs.set(nameOf(projectId, generation, sequence), record && { objects: record.objects, owned: record.owned })
  }

  /** Whether the pack's record agrees with its project's and with its mark. */
  *packFaults(projectId: string, generation: number, sequence: number, record: PackRecord): Generator<Finding> {
    const head = this.heads.get(projectId)
    const subject = `pack ${record.packId}`
    if (head === undefined) yield damage(projectId, subject, 'the project that it belongs to has no record')
    else if (head.generation < generation || head.sequence <= sequence)
      yield damage(projectId, subject, 'the record of its project is older than the pack')
    if (record.owned === undefined && !this.#pending.has(nameOf(projectId, generation, sequence))) {
      yield damage(
        projectId,
        subject,
        'it is not applied and its mark is missing, so that nothing will apply it; reindex does',
      )
    }
  }

  /** Every number that the project gave out must have its pack. */
  *lostPacks(): Generator<Finding> {
    for (const [projectId, { generation, sequence, removed }] of this.heads) {
      for (let number = 1; number < sequence && !removed; number++) {
        if (!this.#packs.has(nameOf(projectId, generation, number)))
          yield damage(projectId, `pack ${number}`, 'its record is missing')
      }
    }
  }

  *locationFaults(
    projectId: string,
    generation: number,
    { sequence, ordinal }: ObjectLocation,
    subject: string,
  ): Generator<Finding> {
    const name = nameOf(projectId, generation, sequence)
    const pack = this.#packs.get(name)
    if (!this.#packs.has(name))
      yield damage(projectId, subject, `its record names pack ${sequence}, which has no record`)
    else if (pack !== undefined && ordinal >= pack.objects)
      yield damage(projectId, subject, 'its record names a place beyond the end of its pack')
    else if (pack?.owned?.has(ordinal) === false)
      yield damage(projectId, subject, `its record names pack ${sequence}, which does not own it`)
  }

  *tombstoneFaults({ projectId, generation }: Tombstone, blobName: string): Generator<Finding> {
    const head = this.heads.get(projectId)
    const isLiving = head !== undefined && !isRemoved(head, generation)
    if (isLiving)
      yield damage(
        projectId,
        `blob ${blobName}`,
        'it says that the project was removed, but the record of the project says otherwise',
      )
  }
}

function nameOf(projectId: string, generation: number, sequence: number): string {
  return `${generation} ${sequence} ${projectId}`
}
