import { ObjectScanner, ScanFault, type ScanListener } from './json-scanner.ts'

export interface JsonFault {
  /** The broken rule. Of the text itself it shows at most one printable ASCII character. */
  readonly rule: string
  /** The byte, from 0. */
  readonly at: number
  /** From 1, as editors count. */
  readonly line: number
  /** In characters, from 1. */
  readonly column: number
}

const OPEN = 0x7b
const CLOSE = 0x7d
const LF = 0x0a
const SPACE_BYTES: ReadonlySet<number> = new Set([0x20, LF, 0x0d, 0x09])
const TOLD_NOTHING: ScanListener = {
  onKey: () => 0,
  onString: () => undefined,
  onOther: () => undefined,
  onBrokenSpace: () => undefined,
  onLineSeparator: () => undefined,
}
const CLOSING: Uint8Array = Uint8Array.of(CLOSE)
const ENDS_EARLY = 'the text ends before the object does'

/** The place and the reason why a UTF-8 text is not one JSON object; `undefined` if it is. */
export function jsonFault(text: Uint8Array): JsonFault | undefined {
  const fault = firstFault(text)
  if (fault === undefined) return undefined
  const before = Buffer.from(text.buffer, text.byteOffset, fault.at)
  const lineStart = before.lastIndexOf(LF) + 1
  return { ...fault, line: 1 + count(before, LF), column: 1 + before.toString('utf8', lineStart).length }
}

function firstFault(text: Uint8Array): Pick<JsonFault, 'rule' | 'at'> | undefined {
  let [start, end] = [0, text.length]
  while (start < end && SPACE_BYTES.has(text[start])) start++
  while (end > start && SPACE_BYTES.has(text[end - 1])) end--
  if (text[start] !== OPEN)
    return {
      rule: start === end ? 'there is nothing but white space' : 'it must be one object, which starts with "{"',
      at: start,
    }
  const isClosed = text[end - 1] === CLOSE
  // The scanner needs a closing bracket at the end: one is added, and the scanner finds its absence there.
  const scanned = isClosed ? text.subarray(start, end) : Buffer.concat([text.subarray(start, end), CLOSING])
  const scanner = new ObjectScanner(TOLD_NOTHING, Number.MAX_SAFE_INTEGER)
  scanner.start(scanned)
  try {
    scanner.scan(scanned.length)
  } catch (error) {
    if (!(error instanceof ScanFault)) throw error
    return start + error.at >= end ? { rule: ENDS_EARLY, at: end } : { rule: error.message, at: start + error.at }
  }
  return isClosed ? undefined : { rule: ENDS_EARLY, at: end }
}

function count(bytes: Uint8Array, wanted: number): number {
  let found = 0
  for (const byte of bytes) if (byte === wanted) found++
  return found
}
