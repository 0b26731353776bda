import { onAbort } from '../async/abort.ts'
import type { CallOptions } from '../storage/backend.ts'
import type { FaultInjector, FaultKind } from './faults.ts'
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

/** The effects of a call, each one separate. */
export interface Effects {
  readonly count: number
  /** Makes one of them. A storage that takes time returns when it is made. */
  readonly make: (effect: number) => void | Promise<unknown>
}

const LATENCY_MS_MAX = 4
const SLOW_MS_MAX = 30_000
/** How long a process that sleeps does so at most: for a while, past every time limit, past an epoch and a sweep. */
const SLEEPS_MS_MAX = [20_000, 400_000, 5_400_000]

/** One call that is under way. */
interface Call {
  readonly label: string
  readonly isWrite: boolean
  readonly effects: Effects
  /** How many of its effects were made: the first ones. */
  made: number
  /** Effects that are being made. */
  readonly making: Promise<unknown>[]
  readonly fault: FaultKind | undefined
  /** Whether its fault comes before its effects. */
  isBefore: boolean
  hasArrived: boolean
  readonly answer: () => void
  readonly reject: (reason: unknown) => void
  forgetSignal: (() => void) | undefined
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
    for (const call of this.#calls) {
      if (!call.isWrite) continue
      const isKept = random.chance(0.5)
      const isOne = call.effects.count - call.made === 1
      for (; call.made < call.effects.count; call.made++)
        if (isOne ? isKept : random.chance(0.5)) void attempt(call.effects, call.made)
    }
    for (const { name, chunks } of this.#openPuts) if (random.chance(0.5)) this.#damage?.tear(name, chunks, random)
    this.#calls.clear()
    this.#openPuts.clear()
  }

  /** Makes the effects of one call, in one or two goes, and answers. */
  call<T>(
    label: string,
    { signal, isWrite = false }: CallOptions & { readonly isWrite?: boolean },
    effects: Effects,
    answer: () => T,
  ): Promise<T> {
    const { process, random, faults } = this.#parts
    if (!process.isAlive) return new Promise(() => undefined)
    const fault = faults.next(random, isWrite)
    if (fault === 'flip') this.#damage?.flip(random)
    return new Promise<T>((resolve, reject) => {
      const answers = (): void => {
        try {
          resolve(answer())
        } catch (error) {
          reject(error)
        }
      }
      const state = { made: 0, making: [], isBefore: false, hasArrived: false, forgetSignal: undefined }
      const call: Call = { label, isWrite, effects, fault, answer: answers, reject, ...state }
      this.#calls.add(call)
      if (signal) call.forgetSignal = onAbort(signal, () => this.#abort(call, signal))
      call.isBefore = random.chance(0.5)
      if (fault === 'sleep' && call.isBefore) process.sleep(sleepMs(random))
      const slowMs = fault === 'slow' ? random.below(SLOW_MS_MAX) : 0
      this.#later(call, label, faults.heldMs(process.name, label) + slowMs)
    })
  }

  /** A call of one effect; its answer is the effect's result or error. */
  answerOf<T>(
    label: string,
    options: CallOptions & { readonly isWrite?: boolean },
    make: () => T | Promise<T>,
  ): Promise<T> {
    let answer = (): T => {
      throw new Error('the effect was not made')
    }
    const keep = (value: T): void => void (answer = () => value)
    const keepError = (error: unknown): void =>
      void (answer = () => {
        throw error
      })
    const effect = (): void | Promise<void> => {
      try {
        const made = make()
        return made instanceof Promise ? made.then(keep, keepError) : keep(made)
      } catch (error) {
        return keepError(error)
      }
    }
    return this.call(label, options, { count: 1, make: effect }, () => answer())
  }

  putBegan(name: string): OpenPut {
    const open: OpenPut = { name, chunks: [] }
    this.#openPuts.add(open)
    return open
  }

  putEnded(open: OpenPut): void {
    this.#openPuts.delete(open)
  }

  /** A process that sleeps sends nothing, and is told nothing, before it wakes. */
  #later(call: Call, label: string, delayMs: number): void {
    const { scheduler, process, random } = this.#parts
    const latencyMs = delayMs + random.below(LATENCY_MS_MAX * 8) / 8
    scheduler.schedule(latencyMs, `${label} ${process.name}`, () => process.whenAwake(() => this.#goOn(call)))
  }

  #goOn(call: Call): void | Promise<void> {
    if (!this.#calls.has(call)) return undefined
    if (call.hasArrived) return this.#end(call)
    call.hasArrived = true
    return this.#arrive(call)
  }

  /** The call reaches the storage. */
  #arrive(call: Call): void {
    const { fault, isBefore, isWrite, effects, label } = call
    const { process, random, faults, onCrash } = this.#parts
    if ((fault === 'crash' || fault === 'powerLoss') && isBefore) return onCrash(fault)
    if (fault === 'error') return this.#refuse(call, 'the connection was refused')
    if (isWrite && faults.isDiskFull) return this.#refuse(call, 'no space left on device', 'ENOSPC')
    if (fault === 'hang' && isBefore) return undefined
    const { count } = effects
    if (fault === 'partial' && isWrite && count > 1) {
      for (; call.made < count; call.made++) if (random.chance(0.5)) this.#make(call, call.made)
      return this.#refuse(call, 'the connection was reset')
    }
    const isInTwoGoes = count > 1 && random.chance(0.3)
    this.#makeUpTo(call, isInTwoGoes ? random.between(1, count - 1) : count)
    if (fault === 'sleep') process.sleep(sleepMs(random))
    process.callTookEffect(label)
    return this.#later(call, `${label} ends`, 0)
  }

  #end(call: Call): void | Promise<void> {
    this.#makeUpTo(call, call.effects.count)
    return whenMade(call, () => {
      const { fault } = call
      if (fault === 'crash' || fault === 'powerLoss') return this.#parts.onCrash(fault)
      if (fault === 'lostAnswer' || fault === 'partial') return this.#refuse(call, 'the connection was reset')
      if (fault !== 'hang' && this.#settles(call)) call.answer()
    })
  }

  #refuse(call: Call, message: string, code?: string): void {
    if (this.#settles(call)) call.reject(Object.assign(new Error(message), { code }))
  }

  /** Whether the caller still waits. From now on it does not. */
  #settles(call: Call): boolean {
    if (!this.#calls.delete(call)) return false
    call.forgetSignal?.()
    return true
  }

  #makeUpTo(call: Call, end: number): void {
    for (; call.made < end; call.made++) this.#make(call, call.made)
  }

  #make({ effects, making }: Call, effect: number): void {
    const made = attempt(effects, effect)
    if (made !== undefined) making.push(made)
  }

  /** The caller goes; a write that is on its way may still take effect. */
  #abort(call: Call, { reason }: AbortSignal): void {
    if (!this.#calls.delete(call)) return
    const { scheduler, random } = this.#parts
    if (call.isWrite && random.chance(0.5)) {
      const abandon = (): void => this.#makeUpTo(call, call.effects.count)
      scheduler.schedule(random.below(LATENCY_MS_MAX), 'abandoned write', abandon)
    }
    call.reject(reason)
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

/** An error of an effect is the answer of its call, and does not concern the scheduler. */
function attempt({ make }: Effects, effect: number): Promise<unknown> | undefined {
  try {
    return make(effect)?.catch(() => undefined)
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
