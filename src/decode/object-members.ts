import { StowageError } from '../errors.ts'
import { ObjectScanner, ScanFault, type ScanListener } from '../inspect/json-scanner.ts'
import { decodesTo } from '../inspect/json-string.ts'
import type { Yielder } from '../async/yielder.ts'
import { skipSpace } from './string-array.ts'

/** Scanned in one go, before the event loop may turn. */
const STRETCH_BYTES = 262_144
const OBJECT_OPEN = 0x7b
const OBJECT_CLOSE = 0x7d
const SPACE = 0x20
/** The scanner's numbers for requested values; 0 requests nothing. */
const FIRST_ASKED = 1

/** A member's value: of a string the bytes between its quotes, of anything else the bytes from its first one on. */
export interface MemberValue {
  readonly kind: 'string' | 'array' | 'object' | 'other'
  readonly bytes: Uint8Array
}

export interface MemberOptions {
  /** The members that are asked for; `a.b` is the member b of the object that is the member a. */
  readonly names: readonly string[]
  /** Whether other members, of the object and of the requested objects, are an error. */
  readonly strict: boolean
  readonly nestingMax: number
  /** Names the object in messages. */
  readonly what: string
  readonly yielder: Yielder
}

/**
 * Validates a JSON text (RFC 8259) that is one object and finds the values of some of its members, without building the
 * others. Throws `invalid_json`, `nesting_too_deep`, and `invalid_request` for a text that is not an object, a member
 * that comes twice, or, in a strict reading, an unknown member.
 */
export async function readMembers(text: Uint8Array, options: MemberOptions): Promise<ReadonlyMap<string, MemberValue>> {
  const start = skipSpace(text, 0)
  const end = trimmedEnd(text)
  const bytes = text.subarray(start, Math.max(start, end))
  if (bytes[0] !== OBJECT_OPEN || bytes[bytes.length - 1] !== OBJECT_CLOSE) {
    throw new StowageError('invalid_request', `${options.what} must be one JSON object`)
  }
  const finder = new MemberFinder(bytes, options)
  const scanner = new ObjectScanner(finder, options.nestingMax)
  scanner.start(bytes)
  try {
    while (!scanner.scan(scanner.at + STRETCH_BYTES)) await options.yielder.due()
  } catch (error) {
    if (!(error instanceof ScanFault)) throw error
    throw new StowageError(error.code, `${options.what} is not valid JSON: ${error.message} (byte ${start + error.at})`)
  }
  return finder.found
}

/** A name that is asked for, by its place. */
interface Wanted {
  readonly parent: string | undefined
  readonly key: Uint8Array
}

class MemberFinder implements ScanListener {
  readonly found = new Map<string, MemberValue>()
  readonly #bytes: Uint8Array
  readonly #options: MemberOptions
  readonly #wanted: readonly Wanted[]
  /** The member of the whole that is being scanned, if it was asked for. */
  #member: string | undefined

  constructor(bytes: Uint8Array, options: MemberOptions) {
    this.#bytes = bytes
    this.#options = options
    this.#wanted = options.names.map((name) => {
      const dot = name.indexOf('.')
      return { parent: dot < 0 ? undefined : name.slice(0, dot), key: Buffer.from(name.slice(dot + 1)) }
    })
  }

  onKey(start: number, end: number, escaped: boolean, depth: number): number {
    if (depth > 2 || (depth === 2 && this.#member === undefined)) return 0
    const parent = depth === 1 ? undefined : this.#member
    const index = this.#wanted.findIndex(
      (wanted) => wanted.parent === parent && decodesTo(this.#bytes, start, end, escaped, wanted.key),
    )
    const name = this.#options.names[index]
    if (name === undefined) this.#checkUnknown(start)
    else if (this.found.has(name))
      throw new StowageError('invalid_request', `${this.#options.what} has the member ${name} twice`)
    if (depth === 1) this.#member = name
    return index + FIRST_ASKED
  }

  #checkUnknown(start: number): void {
    const { names, strict, what } = this.#options
    if (strict) {
      throw new StowageError(
        'invalid_request',
        `${what} has an unknown member (byte ${start}); known are ${names.join(', ')}`,
      )
    }
  }

  onString(asked: number, start: number, end: number): void {
    this.found.set(this.#options.names[asked - FIRST_ASKED], {
      kind: 'string',
      bytes: this.#bytes.subarray(start, end),
    })
  }

  onOther(asked: number, start: number, firstByte: number): void {
    const kind = firstByte === 0x5b ? 'array' : firstByte === OBJECT_OPEN ? 'object' : 'other'
    this.found.set(this.#options.names[asked - FIRST_ASKED], { kind, bytes: this.#bytes.subarray(start) })
  }

  onBrokenSpace(): void {}

  onLineSeparator(): void {}
}

function trimmedEnd(text: Uint8Array): number {
  let end = text.length
  while (
    end > 0 &&
    (text[end - 1] === SPACE || text[end - 1] === 0x0a || text[end - 1] === 0x0d || text[end - 1] === 0x09)
  )
    end--
  return end
}
