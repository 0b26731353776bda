import { BLOB_NAME_BYTES_MAX, BLOB_READ_BYTES_MAX } from './backend.ts'
import type { Change, Entry, RangeBounds, RecordLimits } from './backend.ts'

/** The checks that the guard makes for every backend. All throw `RangeError` with the rule that was broken. */

const BLOB_NAME = /^[a-z0-9-]+(?:\/[a-z0-9-]+)*$/
const BLOB_PREFIX = /^(?:[a-z0-9-]+\/)*[a-z0-9-]*$/

export function checkKey(key: Uint8Array, limits: RecordLimits): void {
  if (key.length < 1 || key.length > limits.keyBytesMax) {
    throw new RangeError(`a key has ${key.length} bytes; it must have 1 to ${limits.keyBytesMax}`)
  }
}

export function checkKeys(keys: readonly Uint8Array[], limits: RecordLimits): void {
  for (const key of keys) checkKey(key, limits)
}

export function checkEntries(entries: readonly Entry[], limits: RecordLimits): void {
  for (const { key, value } of entries) {
    checkKey(key, limits)
    checkValue(value, limits)
  }
}

export function checkChange({ put = [], remove = [], expect = [] }: Change, limits: RecordLimits): void {
  checkEntries(put, limits)
  checkKeys(remove, limits)
  for (const { key, value } of expect) {
    checkKey(key, limits)
    if (value) checkValue(value, limits)
  }
  const written = distinctKeys([...put.map((entry) => entry.key), ...remove], 'put and remove')
  const expected = distinctKeys(
    expect.map((expectation) => expectation.key),
    'expect',
  )
  checkCommitSize(new Set([...written, ...expected]).size, put, remove, expect, limits)
}

export function checkRange({ limit = 0 }: RangeBounds): void {
  if (!Number.isSafeInteger(limit) || limit < 0)
    throw new RangeError(`the limit of a range is ${limit}; it must be an integer of 0 or more`)
}

/** Whether the bounds exclude every key. */
export function isEmptyRange({ gte, lt, limit }: RangeBounds): boolean {
  return limit === 0 || Buffer.compare(gte, lt) >= 0
}

export function checkBlobName(name: string): void {
  if (name.length <= BLOB_NAME_BYTES_MAX && BLOB_NAME.test(name)) return
  throw new RangeError(
    `${quoted(name)} is not a blob name: segments of a-z, 0-9 and - separated by /, at most ${BLOB_NAME_BYTES_MAX} bytes`,
  )
}

export function checkBlobNames(names: readonly string[]): void {
  for (const name of names) checkBlobName(name)
}

export function checkBlobPrefix(prefix: string): void {
  if (prefix.length <= BLOB_NAME_BYTES_MAX && BLOB_PREFIX.test(prefix)) return
  throw new RangeError(
    `${quoted(prefix)} is not the beginning of a blob name: segments of a-z, 0-9 and - separated by /`,
  )
}

export function checkReadRange(start: number, end: number): void {
  if (
    Number.isSafeInteger(start) &&
    Number.isSafeInteger(end) &&
    start >= 0 &&
    end >= start &&
    end - start <= BLOB_READ_BYTES_MAX
  )
    return
  throw new RangeError(
    `cannot read from ${start} to ${end}: both must be integers, in order, and at most ${BLOB_READ_BYTES_MAX} bytes apart`,
  )
}

function checkValue(value: Uint8Array, limits: RecordLimits): void {
  if (value.length > limits.valueBytesMax)
    throw new RangeError(`a value has ${value.length} bytes; it must have at most ${limits.valueBytesMax}`)
}

function distinctKeys(keys: readonly Uint8Array[], where: string): Set<string> {
  const distinct = new Set(keys.map((key) => Buffer.from(key.buffer, key.byteOffset, key.length).toString('latin1')))
  if (distinct.size < keys.length)
    throw new RangeError(`a key occurs twice in ${where} of one commit; it must occur at most once`)
  return distinct
}

function checkCommitSize(
  keys: number,
  put: readonly Entry[],
  remove: readonly Uint8Array[],
  expect: NonNullable<Change['expect']>,
  limits: RecordLimits,
): void {
  if (keys > limits.commitEntriesMax)
    throw new RangeError(`a commit names ${keys} keys; it must name at most ${limits.commitEntriesMax}`)
  let bytes = 0
  for (const { key, value } of put) bytes += key.length + value.length
  for (const key of remove) bytes += key.length
  for (const { key, value } of expect) bytes += key.length + (value?.length ?? 0)
  if (bytes > limits.commitBytesMax)
    throw new RangeError(`a commit has ${bytes} bytes; it must have at most ${limits.commitBytesMax}`)
}

function quoted(text: string): string {
  return JSON.stringify(text).slice(0, 64)
}
