import { StowageError } from './errors.ts'

/** 1 MB is 1,048,576 bytes, everywhere. */
export const MB = 1_048_576

/** Bounds on what one request may hold. Each is the largest value that is still accepted. */
export interface Limits {
  /** Bytes of one object as they were received. */
  readonly objectBytesMax: number
  /** Bytes of one upload's body on the wire, multipart framing included. */
  readonly requestBytesMax: number
  /** Bytes that decompression of one upload may produce, all its parts together. */
  readonly inflatedBytesMax: number
  /** Objects in one upload. The pack format holds 500,000 at most. */
  readonly objectsMax: number
  /** Levels of arrays and objects inside one object, itself included. */
  readonly nestingMax: number
  /** Parts of one multipart body, fields included. */
  readonly partsMax: number
  /** Bytes of the headers of one part. */
  readonly partHeaderBytesMax: number
  /** Bytes of the body that lists ids (diff, getobjects, object-stream). */
  readonly idListBytesMax: number
  /** How many ids of objects that arrived without one the response to an upload lists. All are counted. */
  readonly assignedIdsMax: number
}

/** The default limits of a service. */
export const DEFAULT_LIMITS: Limits = {
  objectBytesMax: 10 * MB,
  requestBytesMax: 50 * MB,
  inflatedBytesMax: 512 * MB,
  objectsMax: 500_000,
  nestingMax: 1_000,
  partsMax: 100,
  partHeaderBytesMax: 16_384,
  idListBytesMax: 32 * MB,
  assignedIdsMax: 10_000,
}

/** The most that the formats can hold, regardless of what a host asks for. */
const CEILINGS: Partial<Record<keyof Limits, number>> = {
  objectBytesMax: 256 * MB,
  objectsMax: 500_000,
  nestingMax: 100_000,
  assignedIdsMax: 500_000,
}

/**
 * The defaults with a host's choices on top. Throws `RangeError` for a value that is not a positive integer, or that
 * exceeds the capacity of the formats.
 */
export function resolveLimits(chosen: Partial<Limits> = {}): Limits {
  const limits = { ...DEFAULT_LIMITS }
  for (const [name, value] of Object.entries(chosen) as [keyof Limits, number | undefined][]) {
    if (value === undefined) continue
    if (!(name in DEFAULT_LIMITS))
      throw new RangeError(`limits.${name} is not a limit; known are ${Object.keys(DEFAULT_LIMITS).join(', ')}`)
    const ceiling = CEILINGS[name] ?? Number.MAX_SAFE_INTEGER
    if (!Number.isSafeInteger(value) || value < 1 || value > ceiling) {
      throw new RangeError(`limits.${name} is ${value}; it must be an integer from 1 to ${ceiling}`)
    }
    limits[name] = value
  }
  return limits
}

/** The one place that words a 413 for a size. */
export function tooLarge(
  code: 'object_too_large' | 'request_too_large' | 'inflated_too_large' | 'id_list_too_large',
  what: string,
  max: number,
): StowageError {
  return new StowageError(code, `${what} is larger than the limit of ${max} bytes`)
}
