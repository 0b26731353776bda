import type { Change, CommitResult, Conflict, Entry, RangeBounds } from '../../src/storage/backend.ts'
import { OrderedMap } from './ordered-map.ts'

/**
 * Records in memory; each method is one step. Keys and values are kept as strings of one byte a character: half the
 * size of small typed arrays, and copied on the way in and out.
 */
export class RecordMap {
  readonly #map = new OrderedMap<string>()

  get(key: Uint8Array): Uint8Array | undefined {
    return optionalBytes(this.#map.get(text(key)))
  }

  /**
   * The first entries in the order of the bounds: at most `max`, and at most `bytesMax` bytes of values, but at least
   * one entry.
   */
  slice({ gte, lt, reverse = false }: RangeBounds, max: number, bytesMax: number = Infinity): Entry[] {
    const found = this.#map.slice(text(gte), text(lt), max, reverse)
    let bytes = 0
    const end = found.findIndex(([, value], at) => (bytes += value.length) > bytesMax && at > 0)
    return found
      .slice(0, end === -1 ? undefined : end)
      .map(([key, value]) => ({ key: bytesOf(key), value: bytesOf(value) }))
  }

  set(key: Uint8Array, value: Uint8Array): void {
    this.#map.set(text(key), text(value))
  }

  /** Puts if absent; returns the existing value. */
  insert({ key, value }: Entry): Uint8Array | undefined {
    const name = text(key)
    const held = this.#map.get(name)
    if (held === undefined) this.#map.set(name, text(value))
    return optionalBytes(held)
  }

  /** All of the change, or nothing. */
  commit({ put = [], remove = [], expect = [] }: Change): CommitResult {
    const conflicts = expect.flatMap(({ key, value }, index): Conflict[] => {
      const held = this.#map.get(text(key))
      return held === (value && text(value)) ? [] : [{ index, value: optionalBytes(held) }]
    })
    if (conflicts.length > 0) return { ok: false, conflicts }
    for (const { key, value } of put) this.#map.set(text(key), text(value))
    for (const key of remove) this.#map.delete(text(key))
    return { ok: true }
  }
}

function text(value: Uint8Array): string {
  return Buffer.from(value.buffer, value.byteOffset, value.length).toString('latin1')
}

function bytesOf(value: string): Uint8Array {
  return Buffer.from(value, 'latin1')
}

function optionalBytes(value: string | undefined): Uint8Array | undefined {
  return value === undefined ? undefined : bytesOf(value)
}
