import { constants, createInflateRaw } from 'node:zlib'
import { type Remains, SyncZlib } from './sync-zlib.ts'

/**
 * Inflates raw DEFLATE (RFC 1951) on the calling thread into memory of the caller, with one stream that lives as long
 * as the process. `inflateRawSync` makes a stream, its state of 40 KB and a buffer for each call: with all their
 * garbage, decoding a body of ready blocks took one and a half times as long.
 *
 * Its methods return `undefined` on a platform without the internals that it needs.
 */
export class SyncInflater {
  /** `null` on such a platform. */
  #zlib: SyncZlib | null | undefined

  /** Fills `output` with the first bytes of what a fragment inflates to. Returns whether there are so many. */
  begin(output: Uint8Array, stored: Uint8Array): boolean | undefined {
    const open = this.#open()
    if (open === undefined) return undefined
    return output.length === 0 || this.#write(open, constants.Z_NO_FLUSH, stored, output)?.outputBytes === 0
  }

  /**
   * Fills `output` with what a fragment inflates to, and `tail` but for its last byte with what `suffix` adds. Returns
   * whether the fragment and the suffix are one stream that is whole and inflates to exactly these bytes.
   */
  whole(output: Uint8Array, stored: Uint8Array, suffix: Uint8Array, tail: Uint8Array): boolean | undefined {
    const open = this.#open()
    if (open === undefined) return undefined
    return (
      isUsedUp(this.#write(open, constants.Z_NO_FLUSH, stored, output), 0) &&
      isUsedUp(this.#write(open, constants.Z_FINISH, suffix, tail), 1)
    )
  }

  #open(): SyncZlib | undefined {
    if (this.#zlib === undefined) this.#zlib = SyncZlib.over(createInflateRaw().on('error', () => undefined)) ?? null
    this.#zlib?.reset()
    return this.#zlib ?? undefined
  }

  #write(zlib: SyncZlib, flush: number, input: Uint8Array, output: Uint8Array): Remains | undefined {
    const remains = zlib.write(flush, input, output)
    if (remains === undefined) this.#zlib = undefined
    return remains
  }
}

function isUsedUp(remains: Remains | undefined, outputBytes: number): boolean {
  return remains?.inputBytes === 0 && remains.outputBytes === outputBytes
}

/** The one that all share: a call is over before the next begins. */
export const SYNC_INFLATER: SyncInflater = new SyncInflater()
