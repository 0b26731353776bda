import { pauseBeforeRetry } from '../../async/backoff.ts'
import type { KeyedMutex } from '../../async/keyed-mutex.ts'
import { type Clock, type Environment, timeText } from '../../environment.ts'
import { StowageError } from '../../errors.ts'
import { checkObjectId, quoted } from '../../object/id.ts'
import type { StoreEpoch } from '../../object/epochs.ts'
import type { SignalOptions } from '../../object/graph-store.ts'
import { type NewPin, PERIOD_MS_MAX, type Pin, type PinStore } from '../../object/roots.ts'
import type { RecordStore } from '../../storage/backend.ts'
import { keyBounds, pinKey } from './keys.ts'
import { readObjects } from './locator.ts'
import type { StoredProject } from './project-view.ts'
import { isRemoved, readHead, viewProject } from './projects.ts'
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
  readonly environment: Environment
  /** Those of the committer. */
  readonly turns: KeyedMutex
  /** Makes the condemned objects below a root live again; the commit of the pin expects the epoch. */
  readonly revive: (projectId: string, rootObjectId: string, options: SignalOptions) => Promise<StoreEpoch>
  /** Aborts when the store closes. */
  readonly closing: AbortSignal
}

/** Pins as records of the store: they belong to a generation of a project, and go with it. */
export class PinRecords implements PinStore {
  readonly #parts: PinParts

  constructor(parts: PinParts) {
    this.#parts = parts
  }

  async add(projectId: string, wanted: NewPin): Promise<Pin> {
    const { clock, newId } = this.#parts
    const { rootObjectId, name = null, reason = null, endsAt = null, lifetimeMs } = wanted
    checkEnd(wanted, clock)
    const pin = (): Pin => {
      const nowMs = clock.now()
      const time = nowMs.toString(16).padStart(TIME_DIGITS, '0')
      const id = `${time}${newId()}`.slice(0, ID_DIGITS)
      const ends = [endsAt, lifetimeMs === undefined ? null : timeText(nowMs + lifetimeMs)].filter(
        (end) => end !== null,
      )
      return { id, rootObjectId, name, reason, createdAt: timeText(nowMs), endsAt: earliest(ends) }
    }
    return (await this.#keep(projectId, rootObjectId, pin)).pin
  }

  async take(projectId: string, pin: Pin): Promise<boolean> {
    if (hasEnded(pin, this.#parts.clock)) return false
    return (await this.#keep(projectId, pin.rootObjectId, () => pin)).isNew
  }

  /** `make` is called for each attempt. A pin whose id is there already stays as it is. */
  async #keep(
    projectId: string,
    rootObjectId: string,
    make: () => Pin,
  ): Promise<{ readonly pin: Pin; readonly isNew: boolean }> {
    checkObjectId(rootObjectId)
    const { records, revive, closing, environment } = this.#parts
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      if (attempt > 0) await pauseBeforeRetry(attempt, environment)
      const epoch = await revive(projectId, rootObjectId, { signal: closing })
      const project = await viewProject(records, projectId)
      const [location] =
        project === undefined ? [] : await readObjects(records, project, [Buffer.from(rootObjectId, 'utf8')])
      if (project === undefined || location === undefined)
        throw new StowageError('objects_missing', `the object ${quoted(rootObjectId)} is not held by this project`)
      const pin = make()
      const pins = await this.#all(project)
      if (pins.some(({ id }) => id === pin.id)) return { pin, isNew: false }
      if (pins.length >= PINS_MAX) throw new StowageError('conflict', `this project has ${PINS_MAX} pins, the limit`)
      if (await this.#commit(project, pin, epoch)) return { pin, isNew: true }
    }
    throw new StowageError('overloaded', 'too many writes to this project prevent the pin; try again shortly', {
      headers: { 'Retry-After': '1' },
    })
  }

  /** Whether the commit was made: not if another server was faster, the epoch is over or the project was removed. */
  #commit({ projectId, generation }: StoredProject, pin: Pin, epoch: StoreEpoch): Promise<boolean> {
    const { records, turns } = this.#parts
    return turns.run(projectId, async () => {
      const { key: headKey, bytes, head } = await readHead(records, projectId)
      if (head === undefined || isRemoved(head, generation)) return false
      const key = pinKey(projectId, generation, pin.id)
      const { ok } = await records.commit({
        put: [{ key, value: encodePin(key, pin) }],
        expect: [{ key: headKey, value: bytes }, { key, value: undefined }, epoch.expectation],
      })
      return ok
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
      pins.push(...read.filter(({ pin }) => !hasEnded(pin, clock)).map(({ pin }) => pin))
      const over = read.filter(({ pin }) => hasEnded(pin, clock)).map(({ key }) => key)
      if (over.length > 0) await records.commit({ remove: over.slice(0, 24) })
    }
    return pins
  }
}

/** Throws `invalid_request`. */
function checkEnd({ endsAt = null, lifetimeMs }: NewPin, clock: Clock): void {
  if (hasEnded({ endsAt }, clock))
    throw new StowageError('invalid_request', `endsAt is ${quoted(endsAt ?? '')}; it must be in the future`)
  if (lifetimeMs === undefined) return
  if (!(Number.isSafeInteger(lifetimeMs) && lifetimeMs >= 1 && lifetimeMs <= PERIOD_MS_MAX))
    throw new StowageError(
      'invalid_request',
      `lifetimeMs is ${lifetimeMs}; it must be an integer from 1 to ${PERIOD_MS_MAX}`,
    )
}

/** Of ISO 8601 texts, which need not have the same form; `null` for none. */
function earliest(times: readonly string[]): string | null {
  return times.toSorted((a, b) => Date.parse(a) - Date.parse(b))[0] ?? null
}

function hasEnded({ endsAt }: Pick<Pin, 'endsAt'>, clock: Clock): boolean {
  return endsAt !== null && !(Date.parse(endsAt) > clock.now())
}
