import type { RecordStore } from './backend.ts'

/** No kind of record has this name, and none begins with it. */
export const MAINTENANCE_KEY: Uint8Array = Buffer.from('maintenance\0')

/** What a command does with a whole storage. */
export type MaintenancePurpose = 'reindex' | 'copy'

/**
 * A command that works on the storage as a whole, as all servers of the storage see it. There is no time of a clock in
 * it that anybody compares: a holder that lives changes the counter again and again.
 */
export interface Maintenance {
  /** Random: names this holder. */
  readonly id: string
  readonly counter: number
  readonly purpose: MaintenancePurpose
  /**
   * `reading`: servers refuse writes, until the holder ends or has died. `writing`: the records are incomplete, so
   * servers refuse everything, until the work is finished.
   */
  readonly stage: 'reading' | 'writing'
  /** For people: the machine and the process. */
  readonly holder: string
  /** For people. ISO 8601, by the clock of the holder. */
  readonly since: string
  /** What is copied, so that only the same copy continues. */
  readonly source?: string
}

/** The record as it is stored, and its content. */
export interface StoredMaintenance {
  readonly value: Uint8Array
  /** `undefined` if the record is damaged. */
  readonly content: Maintenance | undefined
}

const STAGES: ReadonlySet<unknown> = new Set(['reading', 'writing'])

/** `undefined` if nobody works on the storage as a whole, or left such work unfinished. */
export async function readMaintenance(records: RecordStore): Promise<StoredMaintenance | undefined> {
  const [value] = await records.getMany([MAINTENANCE_KEY])
  return value && { value, content: decoded(value) }
}

export function encodeMaintenance(content: Maintenance): Uint8Array {
  return Buffer.from(JSON.stringify(content))
}

export function isSame(one: Uint8Array | undefined, other: Uint8Array | undefined): boolean {
  return one === undefined || other === undefined ? one === other : Buffer.compare(one, other) === 0
}

function decoded(value: Uint8Array): Maintenance | undefined {
  try {
    const content = JSON.parse(Buffer.from(value).toString()) as Maintenance
    return STAGES.has(content.stage) ? content : undefined
  } catch {
    return undefined
  }
}
