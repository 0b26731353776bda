import type { MovedRecord, RemoteProject } from './remote-project.ts'

/** The outcome of sending records. */
export interface RecordTotals {
  /** Records that were new. */
  readonly created: number
  /** Records that replaced older ones. */
  readonly updated: number
  /** Records that were there already. */
  readonly unchanged: number
}

/** The capacity of one request: a number of records, or a number of characters of JSON. */
const RECORDS_MAX = 200
const CHARACTERS_MAX = 1_048_576

/** Gathers records into requests, in their order. */
export class RecordSender {
  readonly #project: RemoteProject
  readonly #totals = { created: 0, updated: 0, unchanged: 0 }
  #pending: MovedRecord[] = []
  #characters = 0

  constructor(project: RemoteProject) {
    this.#project = project
  }

  async send(record: MovedRecord): Promise<void> {
    const { length } = JSON.stringify(record)
    if (this.#pending.length > 0 && this.#characters + length > CHARACTERS_MAX) await this.#flush()
    this.#pending.push(record)
    this.#characters += length
    if (this.#pending.length === RECORDS_MAX) await this.#flush()
  }

  /** Sends the rest. */
  async end(): Promise<RecordTotals> {
    await this.#flush()
    return this.#totals
  }

  async #flush(): Promise<void> {
    if (this.#pending.length === 0) return
    const answer = await this.#project.putRecords(this.#pending)
    for (const name of ['created', 'updated', 'unchanged'] as const) this.#totals[name] += Number(answer[name] ?? 0)
    this.#pending = []
    this.#characters = 0
  }
}
