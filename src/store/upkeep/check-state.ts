import { damage, type Finding } from './finding.ts'
import { isRemoved } from '../records/projects.ts'
import type { ObjectRecord } from '../records/object-record.ts'
import { isRetired, type PackRecord } from '../records/pack-record.ts'
import type { ProjectHead } from '../records/records.ts'
import type { Tombstone } from './tombstone.ts'

/** The findings of a check so far, to compare the rest with. */
export class CheckState {
  readonly heads: Map<string, ProjectHead> = new Map()
  /** Blobs that a record names. */
  readonly named: Set<string> = new Set()
  readonly #pending = new Set<string>()
  /** Packs by their number; `undefined` for those whose record is damaged. */
  readonly #packs = new Map<string, Pick<PackRecord, 'objects' | 'owned' | 'condemned'> | undefined>()
  /** By generation, of packs whose records can be read. */
  readonly #storedBytes = new Map<string, number>()

  isRemoved(projectId: string, generation: number): boolean {
    return isRemoved(this.heads.get(projectId), generation)
  }

  addPending(projectId: string, generation: number, sequence: number): void {
    this.#pending.add(nameOf(projectId, generation, sequence))
  }

  addPack(projectId: string, generation: number, sequence: number, record: PackRecord | undefined): void {
    const name = nameOf(projectId, generation, sequence)
    this.#packs.set(name, record && { objects: record.objects, owned: record.owned, condemned: record.condemned })
    if (record === undefined) return
    // A pack that replaces others counts from the layout on at which they do not.
    const { layout } = this.heads.get(projectId) ?? { layout: 0 }
    if (record.state === 'merging' || isRetired(record, layout)) return
    const of = nameOf(projectId, generation)
    this.#storedBytes.set(of, (this.#storedBytes.get(of) ?? 0) + record.packBytes)
  }

  /** Whether the pack has a record, if only a damaged one. */
  hasPack(projectId: string, generation: number, sequence: number): boolean {
    return this.#packs.has(nameOf(projectId, generation, sequence))
  }

  /** Whether the pack's record agrees with its project's and with its mark. */
  *packFaults(projectId: string, generation: number, sequence: number, record: PackRecord): Generator<Finding> {
    const head = this.heads.get(projectId)
    const subject = `pack ${record.packId}`
    if (head === undefined) yield damage(projectId, subject, 'the project that it belongs to has no record')
    else if (head.generation < generation || head.sequence <= sequence)
      yield damage(projectId, subject, 'the record of its project is older than the pack')
    if (record.state === 'committed' && !this.#pending.has(nameOf(projectId, generation, sequence))) {
      yield damage(
        projectId,
        subject,
        'it is not applied and its mark is missing, so that nothing will apply it; reindex does',
      )
    }
  }

  /**
   * Numbers of packs have gaps, where packs were merged. So that a lost pack is noticed all the same, the packs must add
   * up to what the project counts.
   */
  *lostPacks(projectId: string, generation: number, storedBytes: number): Generator<Finding> {
    const head = this.heads.get(projectId)
    const bytes = this.#storedBytes.get(nameOf(projectId, generation)) ?? 0
    if (head === undefined || head.generation !== generation || head.removed || bytes === storedBytes) return
    yield damage(
      projectId,
      'packs of the project',
      `their records add up to ${bytes} bytes, and the totals say ${storedBytes}: ${bytes < storedBytes ? 'the record of a pack is missing' : 'the totals are wrong; reindex counts them again'}`,
    )
  }

  *locationFaults(
    projectId: string,
    generation: number,
    { sequence, ordinal }: ObjectRecord,
    subject: string,
  ): Generator<Finding> {
    const name = nameOf(projectId, generation, sequence)
    const pack = this.#packs.get(name)
    if (!this.#packs.has(name))
      yield damage(projectId, subject, `its record names pack ${sequence}, which has no record`)
    else if (pack !== undefined && ordinal >= pack.objects)
      yield damage(projectId, subject, 'its record names a place beyond the end of its pack')
    else if (pack?.owned?.has(ordinal) === false && pack.condemned?.has(ordinal) !== true)
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

function nameOf(projectId: string, generation: number, sequence?: number): string {
  return `${generation} ${sequence} ${projectId}`
}
