import { type DraftText, draftText, hasBase } from '../common/content-id.ts'
import { encodeDelta } from '../download/deltas.ts'
import { ClientError } from '../common/errors.ts'
import { IDS_PER_REQUEST } from '../http/remote.ts'
import type { TextWithBase } from '../common/types.ts'

/**
 * Objects, or their texts as `{ id, json }`, one by one or in arrays. An object without `id` gets one: the first 32 hex
 * digits of the SHA-256 of its text.
 */
export type UploadSource = Iterable<object> | AsyncIterable<object>

/** Text that waits for the answer to one question for held ids, about. */
const GROUP_BYTES_MAX = 4_194_304
/** Items of a synchronous iterable that are passed on together, since each step takes a turn. */
const ITEMS_AT_ONCE = 256

/** The objects of a source as text, in groups for one question for held ids each. The last object is kept back. */
export class DraftGroups {
  last: DraftText | undefined
  readonly #source: UploadSource
  #group: DraftText[] = []
  #bytes = 0

  readonly #takesDeltas: boolean

  constructor(source: UploadSource, takesDeltas: boolean) {
    this.#source = source
    this.#takesDeltas = takesDeltas
  }

  /** Throws `invalid_value`, `invalid_id` and the errors of the source. */
  async *allButLast(): AsyncGenerator<readonly DraftText[]> {
    for await (const item of Symbol.asyncIterator in this.#source ? this.#source : inArrays(this.#source)) {
      for (const one of flat(item)) {
        if (this.#isFull()) yield this.#take()
        const draft = toDraft(one)
        this.#add(isBased(one) ? await this.#based(draft, one) : draft)
      }
    }
    if (this.#group.length > 0) yield this.#take()
  }

  /** Immediate, so that nothing holds on to the text of the base. */
  async #based({ id, json }: DraftText, { base }: TextWithBase): Promise<DraftText> {
    return this.#takesDeltas ? { id, json, delta: await encodeDelta(base, json) } : { id, json }
  }

  #isFull(): boolean {
    return this.#group.length >= IDS_PER_REQUEST || this.#bytes >= GROUP_BYTES_MAX
  }

  #add(draft: DraftText): void {
    if (this.last !== undefined) {
      this.#group.push(this.last)
      this.#bytes += this.last.json.length
    }
    this.last = draft
  }

  #take(): readonly DraftText[] {
    const group = this.#group
    this.#group = []
    this.#bytes = 0
    return group
  }
}

function* inArrays(items: Iterable<object>): Generator<readonly unknown[]> {
  let array: unknown[] = []
  for (const item of items) {
    for (const one of flat(item)) array.push(one)
    if (array.length < ITEMS_AT_ONCE) continue
    yield array
    array = []
  }
  yield array
}

function isBased(item: unknown): item is TextWithBase {
  return typeof item === 'object' && item !== null && hasBase(item)
}

function flat(item: unknown): readonly unknown[] {
  return Array.isArray(item) ? (item as readonly unknown[]) : [item]
}

function toDraft(item: unknown): DraftText {
  if (typeof item === 'object' && item !== null) return draftText(item)
  throw new ClientError(
    'invalid_value',
    `only objects can be uploaded; this is of type ${item === null ? 'null' : typeof item}`,
  )
}
