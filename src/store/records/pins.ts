import { type Clock, timeText } from '../../environment.ts'
import { StowageError } from '../../errors.ts'
import { checkObjectId, quoted } from '../../object/id.ts'
import type { NewPin, Pin, PinStore } from '../../object/roots.ts'
import type { RecordStore } from '../../storage/backend.ts'
import { keyBounds, pinKey } from './keys.ts'
import { locate } from './locator.ts'
import { readHead } from './projects.ts'
import { decodePin, encodePin } from './records.ts'

const ATTEMPTS_MAX = 100
/** Pins of one project. */
export const PINS_MAX = 1_000
const TIME_DIGITS = 12
const ID_DIGITS = 32

export interface PinParts {
  readonly records: RecordStore
  readonly clock: Clock
  readonly newId: () => string
}

/** Pins as records of the store: they belong to a generation of a project, and go with it. */
export class PinRecords implements PinStore {
  readonly #parts: PinParts

  constructor(parts: PinParts) {
    this.#parts = parts
  }

  async add(projectId: string, { rootObjectId, name = null, reason = null, endsAt = null }: NewPin): Promise<Pin> {
    checkObjectId(rootObjectId)
    const { records, clock, newId } = this.#parts
    if (endsAt !== null && !(Date.parse(endsAt) > clock.now()))
      throw new StowageError('invalid_request', `endsAt is ${quoted(endsAt)}; it must be in the future`)
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const { key: headKey, bytes, head } = await readHead(records, projectId)
      const project = head === undefined || head.removed ? undefined : { projectId, generation: head.generation }
      const [location] =
        project === undefined ? [] : await locate(records, project, [Buffer.from(rootObjectId, 'utf8')])
      if (project === undefined || location === undefined)
        throw new StowageError('objects_missing', `the object ${quoted(rootObjectId)} is not held by this project`)
      if ((await this.#all(project)).length >= PINS_MAX)
        throw new StowageError('conflict', `this project has ${PINS_MAX} pins, the limit`)
      const time = clock.now().toString(16).padStart(TIME_DIGITS, '0')
      const id = `${time}${newId()}`.slice(0, ID_DIGITS)
      const pin: Pin = { id, rootObjectId, name, reason, createdAt: timeText(clock.now()), endsAt }
      const key = pinKey(projectId, project.generation, id)
      const result = await records.commit({
        put: [{ key, value: encodePin(key, pin) }],
        expect: [
          { key: headKey, value: bytes },
          { key, value: undefined },
        ],
      })
      if (result.ok) return pin
    }
    throw new StowageError('overloaded', 'the project is being written to too often to pin an object; try again', {
      headers: { 'Retry-After': '1' },
    })
  }

  async list(projectId: string): Promise<readonly Pin[]> {
    const { head } = await readHead(this.#parts.records, projectId)
    return head === undefined || head.removed ? [] : this.#all({ projectId, generation: head.generation })
  }

  async remove(projectId: string, pinId: string): Promise<void> {
    const pin = (await this.list(projectId)).find(({ id }) => id === pinId)
    if (pin === undefined) throw new StowageError('not_found', `there is no pin ${quoted(pinId)} in this project`)
    const { head } = await readHead(this.#parts.records, projectId)
    if (head !== undefined) await this.#parts.records.commit({ remove: [pinKey(projectId, head.generation, pinId)] })
  }

  /** Removes those whose end has come on the way. */
  async #all({ projectId, generation }: { readonly projectId: string; readonly generation: number }): Promise<Pin[]> {
    const { records, clock } = this.#parts
    const pins: Pin[] = []
    for await (const entries of records.range(keyBounds('pin', projectId, generation))) {
      const read = entries.map(({ key, value }) => ({ key, pin: decodePin(key, value) }))
      const isOver = ({ endsAt }: Pin): boolean => endsAt !== null && Date.parse(endsAt) <= clock.now()
      pins.push(...read.filter(({ pin }) => !isOver(pin)).map(({ pin }) => pin))
      const over = read.filter(({ pin }) => isOver(pin)).map(({ key }) => key)
      if (over.length > 0) await records.commit({ remove: over.slice(0, 24) })
    }
    return pins
  }
}
