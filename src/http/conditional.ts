import { StowageError } from '../errors.ts'

/** The bytes of a representation that are asked for: from `start` up to, not including, `end`. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

const RANGE = /^bytes\s*=\s*(\d{0,15})\s*-\s*(\d{0,15})$/i

/** `If-Match` (RFC 9110 section 13.1.1). Throws `precondition_failed` when it names other versions than this one. */
export function checkIfMatch(headers: Headers, etag: string): void {
  const wanted = headers.get('if-match')
  if (wanted === null || matches(wanted, etag, false)) return
  throw new StowageError('precondition_failed', 'If-Match does not match the current ETag', { headers: { ETag: etag } })
}

/** `If-None-Match` (RFC 9110 section 13.1.2): whether the client has this version already. */
export function isUnmodified(headers: Headers, etag: string): boolean {
  const held = headers.get('if-none-match')
  return held !== null && matches(held, etag, true)
}

/**
 * `Range` with `If-Range` (RFC 9110 sections 13.1.5 and 14.2). `undefined` stands for the whole: no range, several,
 * another unit, bad syntax, or a version that changed. Throws `range_not_satisfiable` for a range that begins after the
 * end.
 */
export function requestedRange(headers: Headers, etag: string, length: number): ByteRange | undefined {
  const header = headers.get('range')
  const condition = headers.get('if-range')
  if (header === null || (condition !== null && condition.trim() !== etag)) return undefined
  const [, first, last] = RANGE.exec(header.trim()) ?? []
  if (first === undefined || last === undefined || (first === '' && last === '')) return undefined
  if (first === '') return suffixRange(Number(last), length)
  const start = Number(first)
  if (last !== '' && Number(last) < start) return undefined
  if (start >= length) throw unsatisfiable(length)
  return { start, end: last === '' ? length : Math.min(length, Number(last) + 1) }
}

function suffixRange(suffixBytes: number, length: number): ByteRange {
  if (suffixBytes === 0 || length === 0) throw unsatisfiable(length)
  return { start: Math.max(0, length - suffixBytes), end: length }
}

function unsatisfiable(length: number): StowageError {
  const headers = { 'Content-Range': `bytes */${length}`, 'Accept-Ranges': 'bytes' }
  return new StowageError('range_not_satisfiable', `the range begins after the last of ${length} bytes`, { headers })
}

/** Entity tags contain no quotes, and ours no commas, so splitting at commas finds ours at any position. */
function matches(list: string, etag: string, weakly: boolean): boolean {
  return list.split(',').some((entry) => {
    const tag = entry.trim()
    return tag === '*' || tag === etag || (weakly && tag === `W/${etag}`)
  })
}
