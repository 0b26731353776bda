import { onAbort } from '../async/abort.ts'
import type { CallOptions } from '../storage/backend.ts'
import type { FaultInjector } from './faults.ts'
import type { SimulatedProcess } from './process.ts'
import type { Random } from './random.ts'
import type { Scheduler } from './scheduler.ts'
import type { SimulatedStorage } from './storage.ts'

/** The environment of a connection, whatever storage it leads to. */
export interface ConnectionParts {
  /** Decides when each call resolves. */
  readonly scheduler: Scheduler
  /** The caller. */
  readonly process: SimulatedProcess
  /** Of this connection alone. */
  readonly random: Random
  /** Decides which call fails, and how. */
  readonly faults: FaultInjector
  /** Called when a fault kills the process that called, or all. */
  readonly onCrash: (kind: 'crash' | 'powerLoss') => void
}

/** The environment of a connection to a simulated storage. */
export interface SimulatedBackendParts extends ConnectionParts {
  /** The data that survives the process. */
  readonly storage: SimulatedStorage
}

/** Damage that a storage can take; one that cannot is never damaged. */
export type Damage = Pick<SimulatedStorage, 'flip' | 'tear'>

/** One effect of a call. A storage that takes time returns when it is made. */
export type Step = () => void | Promise<unknown>

const LATENCY_MS_MAX = 4
const SLOW_MS_MAX = 30_000
/** How long a process that sleeps does so at most: for a while, past every time limit, past an epoch and a sweep. */
const SLEEPS_MS_MAX = [20_000, 400_000, 5_400_000]

/** One call that is under way. */
interface Call {
  /** Its remaining effects, each one separate. */
  readonly steps: Step[]
  readonly isWrite: boolean
  /** Effects that are being made. */
  readonly making: Promise<unknown>[]
}

/** A blob whose content is being read. */
export interface OpenPut {
  readonly name: string
  readonly chunks: Uint8Array[]
}

/** The unanswered calls of one process to the storage. */
export class Calls {
  readonly #parts: ConnectionParts
  readonly #damage: Damage | undefined
  readonly #calls = new Set<Call>()
  readonly #openPuts = new Set<OpenPut>()

  constructor(parts: ConnectionParts, damage?: Damage) {
    this.#parts = parts
    this.#damage = damage
  }

  sever(): void {
    const { random } = this.#parts
    for (const { steps, isWrite } of this.#calls) {
      if (!isWrite) continue
      const isKept = random.chance(0.5)
      for (const step of steps) if (steps.length === 1 ? isKept : random.chance(0.5)) void attempt(step)
    }
    for (const { name, chunks } of this.#openPuts) if (random.chance(0.5)) this.#damage?.tear(name, chunks, random)
    this.#calls.clear()
    this.#openPuts.clear()
  }

  /** Makes the steps of one call, in one or two goes, and answers. */
  call<T>(
    label: string,
    { signal, isWrite = false }: CallOptions & { readonly isWrite?: boolean },
    steps: readonly Step[],
    answer: () => T,
  ): Promise<T> {
    const { process, random, faults } = this.#parts
    if (!process.isAlive) return new Promise(() => undefined)
    const fault = faults.next(random, isWrite)
    if (fault === 'flip') this.#damage?.flip(random)
    const call: Call = { steps: [...steps], isWrite, making: [] }
    this.#calls.add(call)
    return new Promise<T>((resolve, reject) => {
      const unregister = signal && onAbort(signal, () => this.#abort(call, () => reject(signal.reason as Error)))
      const settle = (act: () => void): void => {
        if (!this.#calls.delete(call)) return
        unregister?.()
        act()
      }
      const isBefore = random.chance(0.5)
      const refuse = (message: string, code?: string): void =>
        settle(() => reject(Object.assign(new Error(message), { code })))
      const finish = (): void =>
        settle(() => {
          try {
            resolve(answer())
          } catch (error) {
            reject(error)
          }
        })
      const makeSteps = (count: number): void => this.#make(call, call.steps.splice(0, count))
      if (fault === 'sleep' && isBefore) process.sleep(sleepMs(random))
      const delayMs = faults.heldMs(process.name, label) + (fault === 'slow' ? random.below(SLOW_MS_MAX) : 0)
      this.#later(label, delayMs, call, () => {
        if ((fault === 'crash' || fault === 'powerLoss') && isBefore) return this.#parts.onCrash(fault)
        if (fault === 'error') return refuse('the connection was refused')
        if (isWrite && faults.isDiskFull) return refuse('no space left on device', 'ENOSPC')
        if (fault === 'hang' && isBefore) return undefined
        if (fault === 'partial' && isWrite && call.steps.length > 1) {
          this.#make(
            call,
            call.steps.splice(0).filter(() => random.chance(0.5)),
          )
          return refuse('the connection was reset')
        }
        const isInTwoGoes = call.steps.length > 1 && random.chance(0.3)
        makeSteps(isInTwoGoes ? random.between(1, call.steps.length - 1) : call.steps.length)
        if (fault === 'sleep') process.sleep(sleepMs(random))
        process.callTookEffect(label)
        return this.#later(`${label} ends`, 0, call, () => {
          makeSteps(call.steps.length)
          return whenMade(call, () => {
            if (fault === 'crash' || fault === 'powerLoss') return this.#parts.onCrash(fault)
            if (fault === 'lostAnswer' || fault === 'partial') return refuse('the connection was reset')
            return fault === 'hang' ? undefined : finish()
          })
        })
      })
    })
  }

  /** A call of one step; its answer is the step's result or error. */
  answerOf<T>(
    label: string,
    options: CallOptions & { readonly isWrite?: boolean },
    make: () => T | Promise<T>,
  ): Promise<T> {
    let answer = (): T => {
      throw new Error('the step was not made')
    }
    const keep = (value: T): void => void (answer = () => value)
    const keepError = (error: unknown): void =>
      void (answer = () => {
        throw error
      })
    const step = (): void | Promise<void> => {
      try {
        const made = make()
        return made instanceof Promise ? made.then(keep, keepError) : keep(made)
      } catch (error) {
        return keepError(error)
      }
    }
    return this.call(label, options, [step], () => answer())
  }

  putBegan(name: string): OpenPut {
    const open: OpenPut = { name, chunks: [] }
    this.#openPuts.add(open)
    return open
  }

  putEnded(open: OpenPut): void {
    this.#openPuts.delete(open)
  }

  #make({ making }: Call, steps: readonly Step[]): void {
    for (const step of steps) {
      const made = attempt(step)
      if (made !== undefined) making.push(made)
    }
  }

  /** A process that sleeps sends nothing, and is told nothing, before it wakes. */
  #later(label: string, delayMs: number, call: Call, act: () => void | Promise<void>): void {
    const { scheduler, process, random } = this.#parts
    const latencyMs = delayMs + random.below(LATENCY_MS_MAX * 8) / 8
    scheduler.schedule(latencyMs, `${label} ${process.name}`, () =>
      process.whenAwake(() => (this.#calls.has(call) ? act() : undefined)),
    )
  }

  /** The caller goes; a write that is on its way may still take effect. */
  #abort(call: Call, reject: () => void): void {
    if (!this.#calls.delete(call)) return
    const { scheduler, random } = this.#parts
    if (call.isWrite && random.chance(0.5))
      scheduler.schedule(random.below(LATENCY_MS_MAX), 'abandoned write', () => this.#make(call, call.steps))
    reject()
  }
}

/** Names a call after its method and the kind of the records that it is about: the first letter of their keys. */
export function recordCall(method: string, key: Uint8Array | undefined): string {
  return key === undefined ? method : `${method} ${String.fromCharCode(key[0])}`
}

/** Names a call after its method and the kind of its blob: `pack`, `plan`, `tombstone`. */
export function blobCall(method: string, name: string): string {
  const file = name.slice(name.indexOf('/') + 1)
  return `${method} ${file.includes('-') ? file.slice(0, file.indexOf('-')) : 'pack'}`
}

/** An error of a step is the answer of its call, and does not concern the scheduler. */
function attempt(step: Step): Promise<unknown> | undefined {
  try {
    return step()?.catch(() => undefined)
  } catch {
    return undefined
  }
}

function whenMade({ making }: Call, act: () => void): void | Promise<void> {
  return making.length === 0 ? act() : Promise.all(making).then(act)
}

function sleepMs(random: Random): number {
  return random.below(random.pick(SLEEPS_MS_MAX))
}
