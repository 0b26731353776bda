import { crc32 } from 'node:zlib'
import { applyDelta, type Delta, DeltaFault, deltaTextBytes, parseDelta } from '../delta/delta.ts'
import { StowageError } from '../errors.ts'
import { type Limits, tooLarge } from '../limits.ts'
import type { MemoryLease, MemoryPart } from '../memory/memory-lease.ts'
import type { Element } from '../object/element.ts'
import type { ObjectSelector } from '../object/graph-store.ts'
import { checkObjectId, quoted } from '../object/id.ts'
import { IdSet } from '../object/id-set.ts'
import { type LineParts, linePartsOf } from '../object/line.ts'

const ARRAY_OPEN = 0x5b
/** Bases that are read together. */
const BASES_AT_ONCE = 64
/** The memory of a delta as an array of numbers and strings, per byte of its text. */
const PARSED_BYTES_PER_BYTE = 6

export interface ResolveOptions {
  readonly store: ObjectSelector
  readonly projectId: string
  readonly limits: Pick<Limits, 'objectBytesMax' | 'inflatedBytesMax'>
  readonly signal: AbortSignal
  readonly memory?: MemoryLease
}

interface Waiting {
  readonly element: Element
  readonly delta: Delta
}

/**
 * Elements of which some are deltas (see `Delta`), with each delta replaced by the object that it makes of its base,
 * which the project must hold. Elements that are neither objects nor deltas stay, for the inspection to refuse. Within
 * one batch the deltas come last. Throws `invalid_delta`; `base_mismatch` if a base is not held or has another text
 * than the delta is for; `object_too_large`; and `inflated_too_large` if the bases that are read, or the resulting
 * objects, have more bytes than one upload may inflate to.
 */
export async function* resolveDeltas(
  batches: AsyncIterable<readonly Element[]>,
  options: ResolveOptions,
): AsyncGenerator<readonly Element[]> {
  const resolver = new DeltaResolver(options)
  for await (const batch of batches) {
    const deltas = batch.filter(({ bytes }) => bytes[0] === ARRAY_OPEN)
    if (deltas.length < batch.length) yield batch.filter(({ bytes }) => bytes[0] !== ARRAY_OPEN)
    const waiting = new Map<string, Waiting[]>()
    await resolver.holdDeltas(deltas)
    for (const element of deltas) {
      const delta = parsed(element)
      const others = waiting.get(delta.baseId)
      if (others === undefined) waiting.set(delta.baseId, [{ element, delta }])
      else others.push({ element, delta })
      if (waiting.size === BASES_AT_ONCE) yield* resolver.all(waiting)
    }
    yield* resolver.all(waiting)
  }
}

class DeltaResolver {
  readonly #options: ResolveOptions
  readonly #parsed: MemoryPart | undefined
  /** A base, and the object that is made of it. */
  readonly #texts: MemoryPart | undefined
  #baseBytes = 0
  #madeBytes = 0

  constructor(options: ResolveOptions) {
    this.#options = options
    this.#parsed = options.memory?.part()
    this.#texts = options.memory?.part()
  }

  /** Leases the memory for parsing them. */
  holdDeltas(deltas: readonly Element[]): Promise<void> | undefined {
    let bytes = 0
    for (const element of deltas) bytes += element.bytes.length
    return this.#parsed?.set(bytes * PARSED_BYTES_PER_BYTE)
  }

  /** Empties the map. */
  async *all(waiting: Map<string, readonly Waiting[]>): AsyncGenerator<readonly Element[]> {
    if (waiting.size === 0) return
    for await (const { id, json } of this.#bases(waiting)) {
      this.#baseBytes = this.#counted(this.#baseBytes, json.length, 'the bases of the deltas of the upload')
      const baseId = id.toString('utf8')
      for (const one of waiting.get(baseId) ?? []) {
        await this.#texts?.set(json.length + this.#textBytes(one, json))
        yield [this.#made(one, json)]
      }
      waiting.delete(baseId)
    }
    for (const [{ element, delta }] of waiting.values()) {
      throw new StowageError(
        'base_mismatch',
        `the base ${quoted(delta.baseId)} of a delta is not held; send the object whole (${placeOf(element)})`,
      )
    }
  }

  async *#bases(waiting: ReadonlyMap<string, readonly Waiting[]>): AsyncGenerator<LineParts> {
    const { store, projectId, signal } = this.#options
    const ids = new IdSet(waiting.size)
    for (const id of waiting.keys()) ids.add(checkObjectId(id))
    const selection = await store.select(projectId, ids, { signal })
    try {
      for await (const lines of selection.lines({ signal })) yield* linePartsOf(lines)
    } finally {
      selection.release()
    }
  }

  #textBytes({ element, delta }: Waiting, base: Uint8Array): number {
    const { objectBytesMax } = this.#options.limits
    try {
      return deltaTextBytes(delta, base.length, objectBytesMax)
    } catch (error) {
      throw refusal(error, element, objectBytesMax)
    }
  }

  #made({ element, delta }: Waiting, base: Uint8Array): Element {
    const { objectBytesMax } = this.#options.limits
    try {
      const bytes = applyDelta(delta, base, objectBytesMax, crc32)
      this.#madeBytes = this.#counted(this.#madeBytes, bytes.length, 'the results of the deltas of the upload')
      return { ...element, bytes }
    } catch (error) {
      throw refusal(error, element, objectBytesMax)
    }
  }

  #counted(before: number, bytes: number, what: string): number {
    const { inflatedBytesMax } = this.#options.limits
    if (before + bytes > inflatedBytesMax) throw tooLarge('inflated_too_large', what, inflatedBytesMax)
    return before + bytes
  }
}

function parsed(element: Element): Delta {
  try {
    return parseDelta(
      Buffer.from(element.bytes.buffer, element.bytes.byteOffset, element.bytes.byteLength).toString('utf8'),
    )
  } catch (error) {
    throw refusal(error, element, 0)
  }
}

function refusal(error: unknown, element: Element, objectBytesMax: number): unknown {
  if (!(error instanceof DeltaFault)) return error
  if (error.kind === 'size')
    return tooLarge('object_too_large', `the result of a delta (${placeOf(element)})`, objectBytesMax)
  return new StowageError(
    error.kind === 'base' ? 'base_mismatch' : 'invalid_delta',
    `${error.message}; send the object whole (${placeOf(element)})`,
  )
}

function placeOf({ part, index }: Element): string {
  return `part ${part}, element ${index}`
}
