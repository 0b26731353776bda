import { crc32 } from './crc32.ts'

/** The media type of a JSON array whose elements are objects, or deltas. */
export const DELTA_MEDIA_TYPE = 'application/vnd.stowage.delta+json'

/**
 * The text of a delta has at most this many characters: a larger one is not worthwhile, and parsing it would hold the
 * event loop.
 */
export const DELTA_CHARACTERS_MAX = 1_048_576

/**
 * An object as edits to the text of another one, its base. As JSON it is one array, [base, crc32, skip, copy, insert,
 * skip, copy, insert, ...], with the base's id, the CRC-32 (RFC 1952) of the object's text in UTF-8, and steps of
 * three: move by `skip` bytes in the base from the end of the last copy (0 at first, and it may be negative), append
 * the `copy` bytes from there, then append the text `insert`.
 */
export interface Delta {
  readonly baseId: string
  readonly crc32: number
  /** `skip`, `copy`, `insert`, and so on. */
  readonly steps: readonly (number | string)[]
}

/**
 * `malformed`: this is not a delta. `base`: it is a delta on another text than this base. `size`: its result is too
 * large.
 */
export type DeltaFaultKind = 'malformed' | 'base' | 'size'

/** Why a delta cannot be applied. */
export class DeltaFault extends Error {
  readonly kind: DeltaFaultKind

  constructor(kind: DeltaFaultKind, problem: string) {
    super(problem)
    this.kind = kind
  }
}

const HEAD = 2
const STEP = 3
const encoder = new TextEncoder()

/** Throws `DeltaFault` (`malformed`). */
export function parseDelta(json: string): Delta {
  if (json.length > DELTA_CHARACTERS_MAX)
    throw new DeltaFault(
      'malformed',
      `a delta may have ${DELTA_CHARACTERS_MAX} characters, and this one has ${json.length}`,
    )
  const [baseId, crc, ...steps] = parsedArray(json)
  if (typeof baseId !== 'string')
    throw new DeltaFault('malformed', 'the first element of a delta must be a string, the id of its base')
  if (!isCount(crc) || crc > 0xffffffff)
    throw new DeltaFault('malformed', 'the second element of a delta must be a number, the CRC-32 of the object')
  if (steps.length % STEP !== 0)
    throw new DeltaFault(
      'malformed',
      'after its base and its CRC-32 a delta has elements in threes: skip, copy and insert',
    )
  for (const [at, step] of steps.entries()) {
    const isRight =
      at % STEP === 0 ? Number.isSafeInteger(step) : at % STEP === 1 ? isCount(step) : typeof step === 'string'
    if (!isRight)
      throw new DeltaFault(
        'malformed',
        `element ${at + HEAD} of a delta must be ${['a whole number', 'a whole number of 0 or more', 'a string'][at % STEP]}`,
      )
  }
  return { baseId, crc32: crc, steps: steps as (number | string)[] }
}

/**
 * The text of the object, in UTF-8. Throws `DeltaFault`, also if the text would have more than `bytesMax` bytes, before
 * it is made. `checksum` is for callers with a faster CRC-32.
 */
export function applyDelta(
  { crc32: expected, steps }: Delta,
  base: Uint8Array,
  bytesMax: number,
  checksum: (bytes: Uint8Array) => number = crc32,
): Uint8Array<ArrayBuffer> {
  const text = new Uint8Array(lengthOf(steps, base.length, bytesMax))
  let at = 0
  let cursor = 0
  for (let step = 0; step < steps.length; step += STEP) {
    cursor += steps[step] as number
    const end = cursor + (steps[step + 1] as number)
    text.set(base.subarray(cursor, end), at)
    at += end - cursor
    cursor = end
    at += encoder.encodeInto(steps[step + 2] as string, text.subarray(at)).written
  }
  if (checksum(text) !== expected)
    throw new DeltaFault('base', 'the result of a delta does not have the expected CRC-32')
  return text
}

/** Bytes of the text that a delta makes of a base of this size. Throws like `applyDelta`. */
export function deltaTextBytes({ steps }: Delta, baseBytes: number, bytesMax: number): number {
  return lengthOf(steps, baseBytes, bytesMax)
}

/** Bytes that the steps lead to. */
function lengthOf(steps: readonly (number | string)[], baseBytes: number, bytesMax: number): number {
  let bytes = 0
  let cursor = 0
  for (let step = 0; step < steps.length; step += STEP) {
    cursor += steps[step] as number
    const end = cursor + (steps[step + 1] as number)
    if (cursor < 0 || end > baseBytes)
      throw new DeltaFault('base', `a delta copies bytes ${cursor} to ${end} of a base that has ${baseBytes}`)
    bytes += end - cursor + bytesOf(steps[step + 2] as string)
    if (bytes > bytesMax) throw new DeltaFault('size', `a delta leads to more than ${bytesMax} bytes`)
    cursor = end
  }
  return bytes
}

function bytesOf(text: string): number {
  return text === '' ? 0 : encoder.encode(text).length
}

function parsedArray(json: string): readonly unknown[] {
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch (cause) {
    throw new DeltaFault(
      'malformed',
      `a delta must be a JSON array: ${cause instanceof Error ? cause.message : String(cause)}`,
    )
  }
  if (Array.isArray(value)) return value as readonly unknown[]
  throw new DeltaFault('malformed', 'a delta must be a JSON array')
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
