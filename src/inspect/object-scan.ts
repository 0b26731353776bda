import { isUtf8 } from 'node:buffer'
import { REAL_ENVIRONMENT, type Environment } from '../environment.ts'
import { StowageError, type StowageErrorCode } from '../errors.ts'
import { brokenRule, isObjectId, OBJECT_ID_BYTES_MAX, quoted } from '../object/id.ts'
import { firstBrokenByte } from '../object/utf8.ts'
import { decodeId, ObjectFacts } from './facts.ts'
import type { IdColumn } from './id-column.ts'
import { ObjectScanner } from './json-scanner.ts'
import { ScanFault } from './json-tokens.ts'
import { OneLineText } from './one-line-text.ts'

/** Bytes between two checks of the clock: below 2 ms for the slowest text. */
export const SLICE_BYTES = 131_072
const WORK_MS_MAX = 5
/** Copying a larger text takes a turn of its own. */
const LARGE_BYTES = 1_048_576
/** The cost of the smallest object, in bytes that are scanned in the same time. */
const OBJECT_COST_BYTES = 128

const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

export interface ObjectScanOptions<Where> {
  readonly nestingMax: number
  readonly signal: AbortSignal
  /** That of the process by default. */
  readonly environment?: Environment | undefined
  /** Says in messages where an object comes from. */
  readonly placeOf: (where: Where) => string
}

/** Scans texts that must be one JSON object each, and gathers their facts. */
export class ObjectScan<Where> {
  readonly text: OneLineText = new OneLineText()
  readonly facts: ObjectFacts = new ObjectFacts(this.text)
  readonly #options: ObjectScanOptions<Where>
  readonly #scanner: ObjectScanner
  readonly #environment: Environment
  #bytesSinceClock = 0
  #turnedAtMs: number

  constructor(options: ObjectScanOptions<Where>) {
    this.#options = options
    this.#environment = options.environment ?? REAL_ENVIRONMENT
    this.#turnedAtMs = this.#environment.monotonicMs()
    this.#scanner = new ObjectScanner(this.facts, options.nestingMax)
  }

  /**
   * `facts` and `text` are those of this text until the next call, and its references are in `references`. Returns a
   * promise only if the event loop must run in between.
   */
  scan(source: Uint8Array, where: Where, references: IdColumn): Promise<void> | undefined {
    this.facts.start(source, references)
    this.text.start(source)
    if (this.#bytesSinceClock + source.length > SLICE_BYTES) return this.#scanInSlices(source, where)
    this.#bytesSinceClock += source.length + OBJECT_COST_BYTES
    this.#begin(source, where)
    this.#scanUntil(source.length, source, where)
    return undefined
  }

  /** The id that the text names, which must have one. */
  idOf(source: Uint8Array, where: Where): Uint8Array {
    const member = this.facts.id
    if (member === undefined) throw this.refusal('invalid_object', 0, 'an object must have an "id"', source, where)
    if (!member.isString)
      throw this.refusal('invalid_object', member.at, 'the member "id" must be a string', source, where)
    const id = member.escaped ? decodeId(source, member.start, member.end) : source.subarray(member.start, member.end)
    if (id !== undefined && isObjectId(id)) return id
    const broken =
      id === undefined
        ? `is too long or holds a lone surrogate; it must be 1 to ${OBJECT_ID_BYTES_MAX} bytes of UTF-8`
        : brokenRule(id, OBJECT_ID_BYTES_MAX)
    throw this.refusal('invalid_id', member.at, `the object's id ${broken}`, source, where)
  }

  async turnIfDue(): Promise<void> {
    this.#bytesSinceClock = 0
    if (this.#environment.monotonicMs() - this.#turnedAtMs >= WORK_MS_MAX) await this.#turn()
  }

  /** `at` is a byte of the text. */
  refusal(code: StowageErrorCode, at: number, rule: string, source: Uint8Array, where: Where): StowageError {
    const id = this.#knownId(source)
    const known = id === undefined ? '' : `, id ${quoted(id)}`
    return new StowageError(code, `${rule} (${this.#options.placeOf(where)}${known}, byte ${at} of the object)`)
  }

  async #scanInSlices(source: Uint8Array, where: Where): Promise<void> {
    await this.turnIfDue()
    this.#begin(source, where)
    for (let ended = false; !ended;) {
      ended = this.#scanUntil(this.#scanner.at + SLICE_BYTES, source, where)
      await this.turnIfDue()
    }
    // The next step copies all of the text, and the ids that it mentions.
    if (source.length > LARGE_BYTES) await this.#turn()
  }

  async #turn(): Promise<void> {
    await this.#environment.workTurn()
    this.#options.signal.throwIfAborted()
    this.#turnedAtMs = this.#environment.monotonicMs()
  }

  #begin(source: Uint8Array, where: Where): void {
    if (!isUtf8(source))
      throw this.refusal('invalid_utf8', firstBrokenByte(source), 'the text is not UTF-8', source, where)
    if (source[0] !== OPEN_OBJECT) {
      const rule = 'an element must be a JSON object, which starts with "{"'
      throw this.refusal('invalid_object', 0, rule, source, where)
    }
    if (source.length < 2 || source[source.length - 1] !== CLOSE_OBJECT) {
      const rule = 'the text of an object must end with "}"'
      throw this.refusal('invalid_json', source.length - 1, rule, source, where)
    }
    this.#scanner.start(source)
  }

  #scanUntil(until: number, source: Uint8Array, where: Where): boolean {
    try {
      return this.#scanner.scan(until)
    } catch (error) {
      if (error instanceof ScanFault) throw this.refusal(error.code, error.at, error.message, source, where)
      throw error
    }
  }

  #knownId(source: Uint8Array): string | undefined {
    const member = this.facts.id
    if (member === undefined || !member.isString) return undefined
    const id = member.escaped
      ? decodeId(source, member.start, member.end)
      : source.subarray(member.start, Math.min(member.end, member.start + OBJECT_ID_BYTES_MAX))
    return id === undefined ? undefined : Buffer.from(id).toString('utf8')
  }
}
